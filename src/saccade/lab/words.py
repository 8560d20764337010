"""What the book says besides the claims, in two languages."""

from saccade.lab.claim import Verdict, Words

LANGUAGES = ("en", "ko")
CELLS, WAYS = ("rnn", "gru", "lstm"), {"one direction": "한 방향", "two directions": "두 방향"}
NORMS = {"batch norm": "배치 정규화", "layer norm": "층 정규화"}
TASKS, KINDS = ("copy", "reverse"), {"article": "관사", "letters": "글자"}
ARMS = {  # that have a name in Korean
    "no attention": "어텐션 없음",
    "attention": "어텐션",
    "one vector": "벡터 하나",
    "none": "없음",
    "causal mask": "인과 마스크",
    "no mask": "마스크 없음",
    **NORMS,
    **{f"{norm}, {rows} rows": f"{told}, {rows}줄" for norm, told in NORMS.items() for rows in (4, 16, 32)},
    "residual": "잔차 연결",
    "no residual": "잔차 연결 없음",
    "Bahdanau": "바다나우",
    "Luong": "루옹",
    "Luong, feeding": "루옹, 되먹임",
    "Transformer": "트랜스포머",
    **{f"{task}, {kind}": f"{task}, {told}" for task in TASKS for kind, told in KINDS.items()},
    "permuted": "뒤섞음",
    "permuted, with positions": "뒤섞음, 위치 있음",
    "learned": "배운 위치",
    "sinusoidal": "사인파",
    "rotary": "회전",
    "answer": "답",
    **{f"{cell}, {way}": f"{cell}, {told}" for cell in CELLS for way, told in WAYS.items()},
}
TOLD = {
    "claim": Words("The claim", "주장"),
    "setup": Words("The set-up", "실험"),
    "figures": Words("What was measured", "측정"),
    "verdict": Words("The verdict", "판정"),
    "rule": Words("The rule", "규칙"),
    "again": Words("To run it again", "다시 해 보기"),
    "notes": Words("Lecture notes", "강의 노트"),
    "files": Words("Figures, and a notebook to change", "수치와, 바꾸어 볼 수 있는 노트북"),
    "range": Words(
        "Points are means over the seeds; bands, and what stands in brackets, reach from the lowest to the highest.",
        "점은 시드의 평균이고, 띠와 괄호는 가장 낮은 값에서 가장 높은 값까지다.",
    ),
    "meaning": Words(
        "It holds if every seed is as the rule says, it does not hold if every seed is the other way round, and all between is "
        "within noise.",
        "모든 시드가 규칙대로이면 성립하고, 모든 시드가 거꾸로이면 성립하지 않으며, 그 사이는 모두 잡음 안이다.",
    ),
    "quick": Words(
        "Toy sizes and one seed: this shows only that the claim still runs. The sizes below are those of the book.",
        "장난감 크기와 시드 하나: 이 주장이 아직 돌아간다는 것만 보여 준다. 아래의 크기는 책의 것이다.",
    ),
    "given": Words(
        "Here the pairs of {} take the place of the built-in task: models of the default size for such pairs, as long to "
        "learn for each, quality in BLEU (of spelt words: symbols right, %). What a step takes in time or memory is still measured "
        "at the sizes of the built-in task.",
        "여기서는 {}의 쌍이 내장 과제를 대신한다. 그런 쌍에 맞는 기본 크기의 모형, 모형마다 같은 학습량, 품질은 BLEU(철자로 쓴 단어는 "
        "맞은 기호, %). 한 단계의 시간과 메모리는 여전히 내장 과제의 크기로 잰다.",
    ),
    "little": Words(
        "No model got beyond {:.1f}: give them more --minutes before you believe the verdict.",
        "어느 모형도 {:.1f}을 넘지 못했다. 판정을 믿기 전에 --minutes를 늘려야 한다.",
    ),
    "quality": Words("quality", "품질"),
    "live": Words("Watch it", "직접 보기"),
    "took": Words("minutes of measuring", "측정한 분"),
    "seeds": Words("seeds", "시드"),
    "book": Words("The lab: what the notes claim, tested", "실험실: 강의 노트의 주장을 시험하다"),
    "experiment": Words("Experiment", "실험"),
    "other": Words("한국어", "English"),
    "not yet": Words("not run yet", "아직 실행하지 않음"),
    **{english: Words(english, korean) for english, korean in ARMS.items()},
    Verdict.HOLDS: Words("holds", "성립한다"),
    Verdict.FAILS: Words("does not hold", "성립하지 않는다"),
    Verdict.NOISE: Words("within noise", "잡음 안에 있다"),
}


def told(words: Words, language: str) -> str:
    return words.ko if language == "ko" else words.en

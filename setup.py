"""The one compiled part: without a C compiler it is left out, and torch's operations take over."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "saccade.attention._kernels",
            ["src/saccade/attention/_additive.c", "src/saccade/attention/_glance.c"],
            extra_compile_args=["-O3", "-fopenmp"],
            extra_link_args=["-fopenmp"],
            optional=True,
        )
    ]
)

"""The one compiled part: without a C compiler it is left out, and additive attention runs in torch blocks instead."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "saccade.attention._additive",
            ["src/saccade/attention/_additive.c"],
            extra_compile_args=["-O3", "-fopenmp"],
            extra_link_args=["-fopenmp"],
            optional=True,
        )
    ]
)

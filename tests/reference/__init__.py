"""The equations of the lecture notes in plain NumPy, to be read as a textbook: one vector at a time, no tricks.

Nothing here is fast and nothing here knows saccade. Every fast path is compared with these pages.
"""

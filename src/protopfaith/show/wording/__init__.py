"""What figures, pages and notebooks say, as plain text: templates escape it.

- `numbers`: shares and values as people read them
- `costs`: what a result cost and how far off it may be, in a few words
- `decision`: the answer in a sentence or two
- `trust`: how far an explanation can be trusted
"""

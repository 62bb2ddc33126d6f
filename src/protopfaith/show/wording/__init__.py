"""What figures, pages and notebooks say, as plain text: templates escape it.

- `decision`, `findings`: the answer in a sentence or two
- `verdicts`, `sharpness`: how sure the decision is, and how sharp the map
- `outputs`: what a map explains, what it adds up to, what it is relative to
- `trust`: how far an explanation can be trusted, and banners for what must not be overlooked
- `places`: where in an image something lies
- `commands`: what a reader can type
- `glossary`: what the words mean
- `numbers`, `costs`: shares and costs as people read them
"""

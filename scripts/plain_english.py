#!/usr/bin/env python3
"""plain_english: counts phrases that make a reader read twice, per 1,000 words of comments and prose.

    plain_english.py            fails above the ceiling in scripts/plain_english.ceiling, which only goes down
    plain_english.py --list     prints each place, to mend some

Similar projects have 0.2 to 0.5 (river, k6, tailscale, temporal, nomad).
"""

import collections
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).parent.parent
CEILING = TREE / "scripts/plain_english.ceiling"
SLACK = 0.2  # phrases per 1,000 words by which a tree may be below the ceiling before it must be lowered

PHRASES = {
    "nobody, somebody, whoever, whom": r"\b(nobody|somebody|whoever|whom)\b",
    "those that / of": r"\bthose (that|of|which)\b",
    "of which, of what": r"\bof (which|what|whom)\b",
    "what is … as a noun": r"\bwhat (is|are|was|were|has|it|runs|waits|comes|follows|holds|ended|came)\b",
    "anew, meanwhile": r"\b(anew|meanwhile)\b",
    "the one(s) of / that": r"\bthe ones? (of|that)\b",
    "so many, so much": r"\bso (many|much|long)\b",
    "is there, are there (as a predicate)": r"\b(that|which|what|it|they) (is|are|was|were) there\b",
    "has it, have it that": r"\b(has|have) it (that|from|by)\b",
}
COMMENT = {".go": r"//(?!go:|nolint)(.*)", ".ts": r"//(.*)|^\s*\*(.*)", ".tsx": r"//(.*)|^\s*\*(.*)", ".py": r"#(.*)|\"\"\"(.*)", ".sql": r"--(.*)"}
SKIPPED = re.compile(r"\.gen\.|dbsqlc|testdata|generated|plain_english")


def texts(path):
    """Yields the number and the prose of each line."""
    source = path.read_text(errors="replace")
    if path.suffix == ".md":
        source = re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), source, flags=re.S)
        yield from enumerate(source.splitlines(), 1)
        return

    pattern = COMMENT.get(path.suffix, r"(?:description|summary): (.*)|^\s{6,}([A-Z].*)")
    for n, line in enumerate(source.splitlines(), 1):
        found = re.search(pattern, line)
        if found:
            yield n, next((g for g in found.groups() if g), "")


def main():
    names = subprocess.run(["git", "-C", TREE, "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    words, hits = 0, collections.Counter()

    for name in names:
        path = TREE / name
        if SKIPPED.search(name) or path.suffix not in {*COMMENT, ".md", ".yaml"} or not path.exists():
            continue

        for n, text in texts(path):
            words += len(text.split())
            for label, pattern in PHRASES.items():
                found = len(re.findall(pattern, text, re.I))
                hits[label] += found
                if found and "--list" in sys.argv:
                    print(f"{name}:{n}: {text.strip()[:140]}")

    rate, ceiling = 1000 * sum(hits.values()) / words, float(CEILING.read_text())
    print(f"{rate:.2f} phrases to read twice per 1,000 words; at most {ceiling}")

    if rate > ceiling:
        print("\n".join(f"  {1000 * count / words:.2f}  {label}" for label, count in hits.most_common()))
        sys.exit("write what you added plainly: scripts/plain_english.py --list")

    if rate < ceiling - SLACK:
        sys.exit(f"good: put {rate + 0.05:.1f} into {CEILING.relative_to(TREE)}")


if __name__ == "__main__":
    main()

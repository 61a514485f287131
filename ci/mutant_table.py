"""mutant_table.py - what ci/mutants found, as lines and as a table."""

# The usual checks (harness/faults/usual.h): JSON key, heading.
USUAL = {
    "rtol_05_atol_1": "rtol .05, atol .1",
    "rtol_01_atol_05": "rtol .01, atol .05",
    "tol_1e_2": "1e-2 both",
    "cosine_99": "cosine > .99",
    "calc_diff_1e_3": "calc_diff < 1e-3",
    "nmse_5e_4": "NMSE < 5e-4",
}
NOT_RUN = "-"


def usual_words(row):
    return ["yes" if row["usual"][name] else "no" for name in USUAL] if "usual" in row else [NOT_RUN] * len(USUAL)


def line(row):
    """One mutant, for the terminal."""
    caught = f"{row['check']} after {row['cases']} cases" if row["status"] == "detected" else row["reason"]
    usual = "usual checks: " + "".join("x" if w == "yes" else "." for w in usual_words(row)) if "usual" in row else ""
    return f"{row['status']:<10}  {row['name']:<26}  {row['seconds']:6.1f} s  {usual}  {caught}"


def counts(rows):
    """Mutants, detected, and by usual check how many it sees of those that are right to compile."""
    valid = [r for r in rows if r["status"] in ("detected", "undetected")]
    seen = [sum(r["usual"][name] for r in valid if "usual" in r) for name in USUAL]
    none = sum(not any(r["usual"].values()) for r in valid if "usual" in r)
    return len(valid), sum(r["status"] == "detected" for r in valid), seen, none


def summary(state):
    rows = state["mutants"]
    total, detected, seen, none = counts(rows)
    first = next(iter(USUAL.values()))
    other = [f"{sum(r['status'] == s for r in rows)} {s}" for s in ("invalid", "unfinished") if any(r["status"] == s for r in rows)]
    return (f"{state['package']}: {detected} of {total} mutants detected" + (", " + ", ".join(other) if other else "")
            + f"; on random data {first} sees {seen[0]}, none of the {len(USUAL)} usual checks sees {none}")


def cell(text):
    return text.replace("|", "\\|")


def row_of(cells):
    return "| " + " | ".join(cell(str(c)) for c in cells) + " |\n"


def head(cells):
    return row_of(cells) + "|" + "---|" * len(cells) + "\n"


def class_table(rows):
    text = head(["class", "mutants", "detected", *USUAL.values(), "none of the six"])
    groups = {}
    for row in rows:
        groups.setdefault(row["class"], []).append(row)
    for name, members in [*groups.items(), ("all", rows)]:
        total, detected, seen, none = counts(members)
        text += row_of([name, total, detected, *seen, none])
    return text


def seen_by(row, full):
    if row["status"] != "detected":
        return f"**{row['status']}**"
    return ", ".join(f"{check} {n}" for check, n in row["checks"].items()) if full else row["check"]


def mutant_table(rows, full):
    text = head(["mutant", "class", "function", "what is wrong", "seen by", "first case", "cases", "seconds", *USUAL.values()])
    for row in rows:
        case = row.get("case", row["reason"]).split("/", 1)[-1]
        text += row_of([row["name"], row["class"], ", ".join(dict.fromkeys(row["functions"])), row["what"], seen_by(row, full), case,
                        row["cases"], f"{row['seconds']:.0f}", *usual_words(row)])
    return text


def markdown(state):
    base = state["baseline"]
    passing = sum(v == "pass" for v in base["verdicts"].values())
    on = f" on {base['device']}" if base["device"] else ""
    text = f"# Mutants of {state['package']}{on}\n\n"
    text += f"{summary(state)}.\n\n"
    text += (f"Without a mutant {passing} of {len(base['verdicts'])} cases of {state['suite']} pass; the others count for "
             f"nothing. The usual checks: {state['usual_runs']} set(s) of random data for each configuration; yes: they fail in one, "
             "and pass there without the mutant.\n\n")
    return text + class_table(state["mutants"]) + "\n" + mutant_table(state["mutants"], state["full"])

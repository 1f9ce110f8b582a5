from experiments.frame.canvas import even_lines


def test_no_word_stands_alone_in_a_title() -> None:
    text = "Decode is fastest with 2 threads: 127 tokens/s, a busy neighbour leaves 2 % of it"
    lines = even_lines(text, 75).splitlines()
    assert " ".join(lines) == text
    assert len(lines) == 2
    assert abs(len(lines[0]) - len(lines[1])) < 12


def test_a_title_that_fits_is_one_line() -> None:
    assert even_lines("of it", 75) == "of it"
    assert even_lines("", 75) == ""


def test_a_sign_stays_with_its_number() -> None:
    assert even_lines("it leaves 24 % of it", 12) == "it leaves\n24 % of it"

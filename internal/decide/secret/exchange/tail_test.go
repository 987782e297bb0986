package exchange

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAHeldAnswerIsClosed while a read of it is under way: nothing is left of that.
func TestAHeldAnswerIsClosed(t *testing.T) {
	for name, f := range forms() {
		synctest.Test(t, func(t *testing.T) {
			in, out := io.Pipe()
			a, err := ask(t, toOther(guessed), f, in)
			if err != nil {
				t.Fatal(err)
			}
			says := f.part("hel")
			go func() { _, _ = io.WriteString(out, says) }()
			b := make([]byte, 100)
			if _, err := io.ReadFull(a.Body, b[:len(says)]); err != nil || string(b[:len(says)]) != says {
				t.Errorf("%s: %q, %v", name, b, err)
			}
			ended := make(chan error)
			go func() {
				_, err := a.Body.Read(b)
				ended <- err
			}()
			synctest.Wait()
			if err := a.Body.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: %v", name, err)
			}
		}) // which waits for all goroutines
	}
}

// TestHeldBytesDoNotStandInTheWay: a host that says something and goes on once it has an answer to that has it, and
// words that come one by one come as they are said, each by the patience later at most.
func TestHeldBytesDoNotStandInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		a, err := ask(t, toOther(guessed), forms()["text"], in)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan bool)
		go func() {
			_, _ = io.WriteString(out, "ping")
			<-answered
			_, _ = io.WriteString(out, "pong")
			_ = out.Close()
		}()
		b := make([]byte, 100)
		if n, err := a.Body.Read(b); err != nil || string(b[:n]) != "ping" {
			t.Errorf("%q, %v", b[:n], err)
		}
		answered <- true
		if rest, err := io.ReadAll(a.Body); err != nil || string(rest) != "pong" {
			t.Errorf("%q, %v", rest, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		const each = 30 * time.Millisecond
		var words []saying
		for range 100 {
			words = append(words, saying{each, "word "})
		}
		_, all, _ := watch(t, toOther(guessed), forms()["text"], words, io.EOF)
		came := 0
		for _, one := range all {
			if came += one.bytes; one.at > each*time.Duration(came/len("word "))+usualPatience {
				t.Fatalf("%d bytes after %v", came, one.at)
			}
		}
	})
}

// TestATailEndsWherePiecesOfTextDo: of structured text nothing waits between its parts. No brace that ends an
// escape is such an end.
func TestATailEndsWherePiecesOfTextDo(t *testing.T) {
	for text, held := range map[string]int{
		"": 0, `{"a": "b"}`: 0, "[1, 2]\n": 0, `{"a": `: 2, `"a", `: 0, "data: {}\n\n": 0, "data: a\n\n": 9, "<a>b": 1, `"sk-`: 3,
		`"\u{73}`: 6, `"\N{LATIN SMALL LETTER S}`: 24, `"\u{73}\u{6b}`: 12, `"\n",{}`: 0, `"\n` + strings.Repeat(" ", maxEscape) + `", {}`: 0,
	} {
		for at := range len(text) + 1 {
			s := scan{needles: &needles{}}
			_, _ = s.takeMore([]byte(text[:at]), false)
			if _, _ = s.takeMore([]byte(text[at:]), false); s.heldBytes() != held {
				t.Errorf("%q, parted at %d: %d bytes wait, not %d", text, at, s.heldBytes(), held)
			}
		}
	}
}

// TestNoByteWithinAnEscapeEndsAPiece: bytes that end a piece stand in braces whose backslash is escaped, or parted from them by colours,
// and in terminals' sequences. A value that is written so is masked as it is where it comes whole, wherever it is cut.
func TestNoByteWithinAnEscapeEndsAPiece(t *testing.T) {
	t.Parallel()
	around := map[string]func(string) string{
		"as it is": func(s string) string { return s }, "for markup": func(s string) string { return strings.ReplaceAll(s, `\`, "&#92;") }, "by name": func(s string) string { return strings.ReplaceAll(s, `\`, "&bsol;") },
		"for URLs": func(s string) string { return strings.ReplaceAll(s, `\`, "%5c") }, "printable": func(s string) string { return strings.ReplaceAll(s, `\`, "=5C") }, "full width": func(s string) string { return strings.ReplaceAll(s, `\`, "\uff3c") },
		"coloured": func(s string) string { return "\x1b[1m" + strings.Join(strings.Split(s, ""), "\x1b[0m\x1b[1m") }, "soft": func(s string) string { return strings.Join(strings.Split(s, ""), "=\n") },
	}
	within := map[string]func(string) string{
		"braces": eachLetter(`\u{%x}`), "Perl's": eachLetter(`\x{%x}`), "octal": eachLetter(`\o{%o}`), "numbers": eachLetter(`\N{U+%x}`),
		"keys": eachLetter("%c\x1b[>4;1m"), "more": eachLetter("%c\x1b[1,2)}"), "quotes": eachLetter("%c\x1b[\"'p"), "brackets": eachLetter("%c\x1b[1]"),
		"as JSON": eachLetter(`%c\u001b[>4;1m`), "as a shell": eachLetter(`%c\033[>4m`), "as a reference": eachLetter("%c&#27;[>4m"), "as a reference, hexadecimal": eachLetter("%c&#x1B;[>4m"), "as a URL": eachLetter("%c%%1b[>4m"),
	}
	sought, found := seek(guessed), map[string]bool{}
	for name, write := range within {
		for outer, rewrite := range around {
			text := `{"key": "` + rewrite(write(guessed)) + `"}`
			whole, of := inCuts(&scan{needles: sought}, text)
			if of == "" {
				continue
			}
			found[name], found[outer] = true, true
			for cut := range len(text) {
				if got, _ := inCuts(&scan{needles: sought}, text, cut); got != whole {
					t.Fatalf("%s, %s: %q|%q: %q", name, outer, text[:cut], text[cut:], got)
				}
			}
		}
	}
	if len(found) != len(within)+len(around) {
		t.Errorf("the control: found whole are %v", found)
	}
}

// TestAnEscapeMayBeginFarBefore the byte that ends it, or a sequence: behind any number of what is not seen, and behind escapes of
// the sequence's other bytes. No byte in it ends a piece, wherever a secret with such a letter is cut.
func TestAnEscapeMayBeginFarBefore(t *testing.T) {
	t.Parallel()
	const first, letter, rest = "sk-Zq81", "x", "Kf0TwLm33"
	unseen, number := strings.Repeat("\u200b", 2*reach), "&#00000000000000000000000000049;"
	for name, within := range map[string]string{
		"braces": `\` + unseen + `u{78}`,
		"padded": letter + "&#27;[" + strings.Repeat(number, 8) + ",m", "JSON": letter + `\u001b[` + strings.Repeat(`\u0031`, 30) + ")m", "by name": letter + "&#x1b;[" + strings.Repeat(`\N{DIGIT ONE}`, 30) + "]",
	} {
		text := `{"key": "` + first + within + rest + `"}`
		whole, of := inCuts(&scan{needles: seek(guessed)}, text)
		if of == "" {
			t.Errorf("the control: %s is not found whole", name)
		}
		for cut := range len(text) {
			if got, _ := inCuts(&scan{needles: seek(guessed)}, text, cut); !masksAll(got, whole, text) {
				t.Errorf("%s: %q|%q: %q", name, text[:cut], text[cut:], got)
				break
			}
		}
	}
}

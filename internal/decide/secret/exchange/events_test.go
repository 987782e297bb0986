package exchange

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// separators are what the readers of escapes, encodings and terminals treat in a way of its own, and what looks like it.
func separators() []string {
	far := func(one string) string { return strings.Repeat(one, 100) }
	padded := strings.Repeat("&#000000000000000000000000000049;", 8)
	return []string{
		"=", "\r", "\n", " ", "\t", "\\", "%", "&", "#", ";", "{", "}", "+", "-", ".", ":", ",", "\"", "'", "$", "!", "/", "_", "A", "0",
		"\x00", "\x1b", "\x7f", "\x80", "\xff", "\v", "\f", "\u0085", "\u00a0", "\u00ad", "\u200b", "\u2028", "\ufeff", "\ufe0f", "\uff0e", "\uff1d", "\uff3c", "\uff21",
		"=\n", "=\r\n", "=\r", "\\\n", "\\\r\n", "\\\\", "\\ ", "<!---->", "/**/", "//", "==",
		"&#10;", "&#x0a;", "&#0010", "&NewLine;", "&Tab;", "&shy;", "&#61;", "&equals;", "&bsol;", "&amp;", "&#8203;", "&amp;#10;",
		`\n`, `\r\n`, `\t`, `\u000a`, `\x0a`, `\012`, `\u{a}`, `\o{12}`, `\N{U+A}`, `\N{EQUALS SIGN}`, `\u003d`, `\x5c`, `\u200b`, `\a `, `\5c`, `\5c `, `\3d `, `\00003d`, `\75`, `\134`,
		"%0a", "%0D%0A", "%20", "%3D", "%5C", "%5Cn", "%e2%80%8b", "=0A", "=0D=0A", "=20", "=3D", "=5C", "=5Cn", "=5Cu{a}",
		"\x1b[", "\x1b[m", "\x1b[1;31m", "\x1b[>4;.m", "\x1b[1'}", "\x1b[1=m", "\x1b]", `\u001b[m`, `\033[.m`, "&#27;[,m", "%1b[>4;1m", "&#x1B;[", "&#27;[" + padded + ".m",
		far(" "), far("\t"), far("\u200b"), far("\x00"), far("=\n"), far("\x1b[m"), far("\\\n"), far("&shy;"), far("\ufeff"),
		`\n` + far(" "), "&#10;" + far("\t"), "%0D%0A" + far(" "), `\u200b` + far(" "),
	}
}

// ofLines is a form of messages that lines end, and how these may end.
type ofLines struct {
	kind string
	ends []string
}

func formsOfLines() []ofLines {
	return []ofLines{{"text/event-stream", []string{"\n\n", "\r\n\r\n", "\r\r", "\r\n\n"}}, {"application/x-ndjson", []string{"\n", "\r\n"}}}
}

// encodings are ways in which a secret comes of which a part may be looked for, with the letters that it has.
func encodings() map[string]func(string) string {
	return map[string]func(string) string{
		"plain": func(s string) string { return s }, "base64": encode, "base64url": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }, "hexadecimal": func(s string) string { return hex.EncodeToString([]byte(s)) },
		"percent": eachLetter("%%%02x"), "base64 twice": func(s string) string { return encode(encode(s)) },
	}
}

// linesOf are letters on a line of sixteen, and further ones of so many, with something behind each group of them that a function gives.
func linesOf(letters string, size, group int, between func() string) (lines []string) {
	const first = 16
	all := slices.Collect(slices.Chunk([]byte(letters[first:]), size))
	for _, line := range slices.Concat([][]byte{[]byte(letters[:first])}, all) {
		var b strings.Builder
		for part := range slices.Chunk(line, group) {
			b.Write(part)
			b.WriteString(between())
		}
		lines = append(lines, b.String())
	}
	return lines
}

// passesMore tells what of lines comes where each is a read of its own, and does not where they come at once.
func passesMore(sought *needles, kind string, lines []string, end string) (got, whole string, more bool) {
	text := "data: a.\n\ndata: auth=" + strings.Join(lines, end) + end + "data: .\n\n"
	if len(text) > keptAlways {
		return "", "", false // no more is looked through at a time
	}
	if whole = sought.masked(text); whole == text {
		return "", whole, false
	}
	var cuts []int
	at := strings.Index(text, "auth=") + len("auth=")
	for _, line := range lines {
		at += len(line) + len(end)
		cuts = append(cuts, at)
	}
	s := scan{needles: sought, tail: tail{framing: framingOf(answerOf(http.MethodGet, kind, ""))}}
	got, _ = inCuts(&s, text, cuts...)
	for i := range text {
		if len(got) != len(text) || whole[i] == mask && got[i] != mask && !isBlank(text[i]) {
			return got, whole, true
		}
	}
	return got, whole, false
}

// secretsInLines are of letters of base64 alone, of others as well, and of two lines.
func secretsInLines() []string {
	return []string{guessed + "/0123456789abcdefghij", "pa:ss.wo!rd:of.a~longer:one", "first.line:of~it\nand.the~second:one"}
}

// TestNoEventEndsWhereASecretMayGoOn: whatever stands between the letters of a secret, in whichever encoding, on lines behind
// each of which an event may end: of the lines that come one by one nothing passes that does not if they come at once.
func TestNoEventEndsWhereASecretMayGoOn(t *testing.T) {
	t.Parallel()
	var all []string
	for c := range 256 {
		all = append(all, string([]byte{byte(c)}))
	}
	tokens := separators()
	all = append(all, tokens...)
	long := os.Getenv("COFFERDAM_LONG") != ""
	for i, one := range tokens {
		for j, other := range tokens {
			if long || (i*len(tokens)+j)%10 == 0 {
				all = append(all, one+other)
			}
		}
	}
	for _, secret := range secretsInLines() {
		sought := seek(secret)
		for name, encoded := range encodings() {
			t.Run(name+" of "+secret[:8], func(t *testing.T) {
				t.Parallel()
				masked, letters := 0, encoded(secret)
				for at, separator := range all {
					for _, sizes := range [][2]int{{16, 1}, {16, 4}, {16, 16}, {4, 16}} {
						size, group := sizes[0], sizes[1]
						for _, form := range formsOfLines() {
							end := form.ends[at%len(form.ends)]
							got, whole, more := passesMore(sought, form.kind, linesOf(letters, size, group, func() string { return separator }), end)
							if got != "" {
								masked++
							}
							if more {
								t.Errorf("%s, %q behind each %d on lines of %d that end with %q: %.300q, and at once %.300q", form.kind, separator, group, size, end, got, whole)
							}
						}
					}
				}
				if masked == 0 && name != "percent" && !strings.Contains(secret, "\n") {
					t.Error("the control: nothing is masked")
				}
			})
		}
	}
}

// TestNoEventEndsWhereASecretMayGoOnByLot is the same of what is drawn by lot: other things at each place, of up to three.
func TestNoEventEndsWhereASecretMayGoOnByLot(t *testing.T) {
	t.Parallel()
	rounds, r, masked := 10_000, rand.New(rand.NewPCG(5, 6)), 0
	if os.Getenv("COFFERDAM_LONG") != "" {
		rounds = 100_000
	}
	tokens, ways, secrets := separators(), encodings(), secretsInLines()
	names := []string{"plain", "base64", "base64", "base64url", "hexadecimal", "base64 twice"}
	for range rounds {
		secret := secrets[r.IntN(len(secrets))]
		few := []string{"", tokens[r.IntN(len(tokens))], tokens[r.IntN(len(tokens))]}
		between := func() (all string) {
			for range r.IntN(4) {
				all += few[r.IntN(len(few))]
			}
			return all
		}
		form := formsOfLines()[r.IntN(2)]
		lines := linesOf(ways[names[r.IntN(len(names))]](secret), []int{2, 4, 16, 16}[r.IntN(4)], []int{4, 16, 16}[r.IntN(3)], between)
		got, whole, more := passesMore(seek(secret), form.kind, lines, form.ends[r.IntN(len(form.ends))])
		if got != "" {
			masked++
		}
		if more {
			t.Errorf("%s: %.300q, and at once %.300q", form.kind, got, whole)
		}
	}
	if masked < rounds/10 {
		t.Errorf("the control: %d are masked", masked)
	}
}

// TestOrdinaryEventsComeAtOnce: nothing waits behind a whole event as models' services and others send it, whether the run has a
// secret with a bracket in it or not.
func TestOrdinaryEventsComeAtOnce(t *testing.T) {
	for _, secret := range []string{guessed, `{"key": "value-of-it"}`} {
		for _, event := range []string{
			": keep-alive\n\n", "data: [DONE]\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n", "event: message_stop\r\ndata: {}\r\n\r\n",
			"data: {\"id\":\"chatcmpl-9aZk2xP7Qm4\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":null}]}\n\n",
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"5% of it:\\n\\n* one\\n\"}}\n\n",
			"data: {\"delta\":{\"partial_json\":\"{\\\"count\\\": 27, \\\"a\\\": \\\"b\\\\nc\\\"}\"}}\n\n",
			"data: {\"b64_json\":\"" + strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 40) + "==\"}\n\n",
			"data: **Bold**, and some more words of it.\n\n", "data: Hello there, my friend\n\n", "id: 12345\nretry: 3000\ndata: ok\n\n", "data: # A heading\ndata:\ndata: - an item\n\n", "\n\n",
			"data: {\"url\":\"https://service.example/a?b=c&d=%20e\"}\n\n",
		} {
			s := scan{needles: seek(secret), tail: tail{framing: framingOf(answerOf(http.MethodGet, "text/event-stream", ""))}}
			for range 3 {
				if got, _ := s.takeMore([]byte(event), false); string(got) != event {
					t.Errorf("%.12s: of %q comes %q", secret, event, got)
				}
			}
		}
	}
}

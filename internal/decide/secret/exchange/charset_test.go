package exchange

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

// TestAnswersInLettersThatTheClientChose: frameworks write a text in the charset that the client's
// Accept names, and the answer says which. No client gets to ask for one, and an answer in letters
// other than ASCII's own is refused, since no secret is seen in it. The controls: in charsets that have
// ASCII as it is, the same answer arrives, masked, and the rest of Accept stays.
func TestAnswersInLettersThatTheClientChose(t *testing.T) {
	t.Parallel()
	const said = "the last request had Authorization: Bearer " + truth
	ebcdic, err := charmap.CodePage037.NewEncoder().String(said)
	if err != nil {
		t.Fatal(err)
	}
	for charset, c := range map[string]struct {
		body  string
		reads bool
	}{
		"": {said, true}, "utf-8": {said, true}, `"UTF-8"`: {said, true}, "iso-8859-1": {said, true}, "windows-1251": {said, true}, "Shift_JIS": {said, true}, "euc-kr": {said, true}, "gb18030": {said, true},
		"utf-16le": {utf16le(said), true}, "utf-16": {"\xff\xfe" + utf16le(said), true},
		"ibm037": {ebcdic, false}, "IBM037; x=y": {ebcdic, false}, `"cp1047"`: {ebcdic, false}, "x-none": {ebcdic, false}, "utf-8, text/plain; charset=ibm037": {ebcdic, false}, "utf-7": {"+AHQ-r", false}, "unicode-1-1-utf-7": {"+AHQ-r", false},
	} {
		e := New([]Credential{setting()}, all(), &vault{})
		r := post(t, "/echo", "text/plain", "hello")
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		kind := "text/plain"
		if charset != "" {
			kind += "; charset=" + charset
		}
		a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}
		if err := e.Incoming(a); (err == nil) != c.reads {
			t.Errorf("as %q: %v", charset, err)
		}
		if !c.reads {
			continue
		}
		got, err := io.ReadAll(a.Body)
		if err != nil || !strings.Contains(strings.ReplaceAll(string(got), "\x00", ""), "Bearer ") || strings.Contains(strings.ReplaceAll(string(got), "\x00", ""), truth) {
			t.Errorf("as %q: %q, %v", charset, got, err)
		}
	}
}

func utf16le(text string) string { return strings.Join(strings.Split(text, ""), "\x00") + "\x00" }

// TestLettersAreNotAskedFor: of what a client accepts, charsets do not leave.
func TestLettersAreNotAskedFor(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"application/json": "application/json", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",
		"text/plain;charset=IBM037": "text/plain", `text/plain ; Charset = "a;b" ;q=0.5, */*`: "text/plain ;q=0.5, */*", "a/b; charset*=utf-8''cp037, c/d;charset=x;v=1": "a/b, c/d;v=1",
	} {
		r := post(t, "/echo", "text/plain", "hello")
		r.Header["Accept"], r.Header["Accept-Charset"] = []string{said, "*/*;charset=x"}, []string{"IBM037"}
		if err := New([]Credential{setting()}, all(), &vault{}).Outgoing(r); err != nil {
			t.Fatal(err)
		}
		if got := r.Header["Accept"]; got[0] != want || got[1] != "*/*" || r.Header["Accept-Charset"] != nil {
			t.Errorf("%q leaves as %q, %q", said, got, r.Header["Accept-Charset"])
		}
	}
}

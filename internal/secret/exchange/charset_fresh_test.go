package exchange

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

// TestAnAnswerInLettersThatTheClientChose: frameworks (Spring and others) write a text in the charset
// that the client's Accept names, and the answer says which. In letters other than ASCII's own, a
// secret is not seen; so either the client does not get to ask for them, or the answer is refused,
// as a request is in which something is looked for (package reading). The controls: in UTF-8 the
// same answer is masked, and in a charset that has ASCII as it is, too.
func TestAnAnswerInLettersThatTheClientChose(t *testing.T) {
	t.Parallel()
	const said = "the last request had Authorization: Bearer " + truth
	ebcdic, err := charmap.CodePage037.NewEncoder().String(said)
	if err != nil {
		t.Fatal(err)
	}
	for charset, body := range map[string]string{"utf-8": said, "iso-8859-1": said, "ibm037": ebcdic} {
		e := New([]Credential{setting()}, all(), &vault{})
		r := post(t, "/echo", "text/plain", "hello")
		r.Header.Set("Accept", "text/plain;charset="+charset)
		r.Header.Set("Accept-Charset", charset)
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		asked := r.Header.Get("Accept") + r.Header.Get("Accept-Charset")
		if !strings.Contains(asked, charset) {
			continue // the host writes as it is used to
		}
		a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain;charset=" + charset}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
		if err := e.Incoming(a); err != nil {
			continue // refused
		}
		got, err := io.ReadAll(a.Body)
		if err != nil {
			continue // refused in time
		}
		read := string(got)
		if charset == "ibm037" {
			if read, err = charmap.CodePage037.NewDecoder().String(read); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(read, truth) {
			t.Errorf("in %s, as the client asked, the answer has the secret: %q", charset, read)
		}
	}
}

package e2b

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestWhatIsThrownAwayOfAnUploadIsBounded: a part of a form that is no file is unpacked all the same, so it counts
// against what the upload may have, wherever it is. The control is short.
func TestWhatIsThrownAwayOfAnUploadIsBounded(t *testing.T) {
	s := newDataStage(t) // its disk limit is 1 MiB
	const other, file = "--b\r\nContent-Disposition: form-data; name=\"else\"\r\n\r\n%s\r\n", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nx\r\n"
	for name, c := range map[string]struct {
		form   string
		status int
	}{
		"short":            {fmt.Sprintf(other, "x") + file, http.StatusOK},
		"long before":      {fmt.Sprintf(other, strings.Repeat("\x00", 2<<20)) + file, http.StatusInsufficientStorage},
		"long behind":      {file + fmt.Sprintf(other, strings.Repeat("\x00", 2<<20)), http.StatusInsufficientStorage},
		"many that are so": {strings.Repeat(fmt.Sprintf(other, strings.Repeat("\x00", 400<<10)), 3) + file, http.StatusInsufficientStorage},
	} {
		var body bytes.Buffer
		z := gzip.NewWriter(&body)
		_, _ = fmt.Fprint(z, c.form+"--b--\r\n") // into memory
		_ = z.Close()
		r := s.request(http.MethodPost, "/files", &body)
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.Header.Set("Content-Encoding", "gzip")
		if status, answer := s.do(r); status != c.status {
			t.Errorf("%s: %d %.300s", name, status, answer)
		}
	}
}

// countedAccess counts how often the token of a sandbox is asked for.
type countedAccess struct {
	accessStub
	asked int
}

func (a *countedAccess) Token(id string) string {
	a.asked++
	return a.accessStub.Token(id)
}

// TestWhatCanBeNoSignatureIsNotLookedAt: a stranger's signed request is tried with the token of each sandbox, unless it
// is longer than any that a sandbox could have signed. The control is one that might be.
func TestWhatCanBeNoSignatureIsNotLookedAt(t *testing.T) {
	s := newDataStage(t)
	access := &countedAccess{}
	s.data.cfg.Access = access
	signature := Sign("/a", "read", "", "nobody's", "")
	for name, c := range map[string]struct {
		query string
		tried bool
	}{
		"the control":          {"path=/a&signature=" + signature, true},
		"a long path":          {"path=/" + strings.Repeat("a", 5_000) + "&signature=" + signature, false},
		"a long user":          {"path=/a&username=" + strings.Repeat("u", 5_000) + "&signature=" + signature, false},
		"a long expiration":    {"path=/a&signature_expiration=" + strings.Repeat("1", 5_000) + "&signature=" + signature, false},
		"a short signature":    {"path=/a&signature=x", false},
		"too long a signature": {"path=/a&signature=" + signature + "x", false},
	} {
		access.asked = 0
		r := s.request(http.MethodGet, "/files?"+c.query, nil)
		r.Header.Del(headerSandbox)
		r.Header.Del(headerPort)
		r.Header.Del("X-Access-Token")
		if status, answer := s.do(r); status != http.StatusUnauthorized || (access.asked > 0) != c.tried {
			t.Errorf("%s: tried %d times, answered %d %s", name, access.asked, status, answer)
		}
	}
}

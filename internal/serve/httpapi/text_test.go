package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
)

// TestTextThatIsNone: a request that names something by what is no UTF-8 is 400, in bodies and in
// queries, whatever client sends it. The control is text.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	in := serve(t)
	_, secret, err := in.book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	box := "/v1/sandboxes/" + in.create(in.with(secret), api.CreateSandbox{}).ID
	ask := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, in.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(said)
	}
	for name, c := range map[string]struct{ path, body string }{
		"argument":           {box + "/commands", `{"argv":["printf","%s"]}`},
		"variable's name":    {box + "/commands", `{"argv":["x"],"env":{"A%s":"1"}}`},
		"variable":           {box + "/commands", `{"argv":["x"],"env":{"A":"%s"}}`},
		"folder":             {box + "/commands", `{"argv":["x"],"dir":"/%s"}`},
		"user":               {box + "/commands", `{"argv":["x"],"user":"%s"}`},
		"directory":          {box + "/files/mkdir", `{"path":"/%s"}`},
		"old name":           {box + "/files/move", `{"path":"/%s","to":"/x"}`},
		"new name":           {box + "/files/move", `{"path":"/x","to":"/%s"}`},
		"run":                {"/v1/sandboxes", `{"run":"%s"}`},
		"sandbox's variable": {"/v1/sandboxes", `{"env":{"A":"%s"}}`},
		"mount's target":     {"/v1/sandboxes", `{"mounts":[{"source":"/tmp","destination":"/%s"}]}`},
	} {
		for _, none := range []string{`\udcff`, `\ud83dx`, "\xff"} {
			if status, said := ask(http.MethodPost, c.path, fmt.Sprintf(c.body, none)); status != http.StatusBadRequest || !strings.Contains(said, "not valid JSON") {
				t.Errorf("%s: %q is answered %d %s", name, none, status, said)
			}
		}
		if _, said := ask(http.MethodPost, c.path, fmt.Sprintf(c.body, `\ud83d\ude00`)); strings.Contains(said, "not valid JSON") {
			t.Errorf("%s: a pair is refused: %s", name, said)
		}
	}
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/files"}, {http.MethodPut, "/files"}, {http.MethodDelete, "/files"}, {http.MethodGet, "/files/stat"}, {http.MethodGet, "/files/list"},
	} {
		if status, said := ask(c.method, box+c.path+"?path=%2Fbad%FF", ""); status != http.StatusBadRequest || !strings.Contains(said, "UTF-8") {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, said)
		}
	}
}

package backend_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// asked is a request's body, which shares some fields with others.
type asked struct {
	shared
	Name  string   `json:"name"`
	Parts []part   `json:"parts"`
	More  []string `json:"more,omitempty"`
	own   int
}

type shared struct {
	Count int `json:"count"`
}

type part struct {
	At string `json:"at"`
}

// TestReadJSON: what is not exactly a request is refused, in words that say where and what
// there could be.
func TestReadJSON(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, says string }{
		"good":            {`{"name":"x","count":2,"parts":[{"at":"/"}]}`, ""},
		"unknown":         {`{"nam":"x"}`, `unknown field "nam"; known fields: count, more, name, parts`},
		"unknown below":   {`{"parts":[{"at":"/"},{"to":"/"}]}`, `unknown field "parts/1/to"; known fields: at`},
		"another case":    {`{"Name":"x"}`, `unknown field "Name"`},
		"twice":           {`{"name":"x","name":"y"}`, "duplicate"},
		"the wrong kind":  {`{"name":[]}`, `at "name": the field takes no JSON array`},
		"a wrong kind":    {`{"count":true}`, `at "count": the field takes no JSON boolean`},
		"no whole number": {`{"count":1.5}`, `at "count"`},
		"no object":       {`[]`, "a JSON array; send an object"},
		"two values":      {`{} {}`, "not valid JSON"},
		"no JSON":         {`{"name"`, "not valid JSON"},
		"no UTF-8":        {"{\"name\":\"\xff\"}", "not valid JSON"},
		"too large":       {`{"name":"` + strings.Repeat("x", 200) + `"}`, "larger than 200 bytes"},
	} {
		var got asked
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		empty, err := backend.ReadJSON(r, 200, &got)
		switch {
		case empty:
			t.Errorf("%s: empty", name)
		case c.says == "" && (err != nil || got.Name != "x" || got.Count != 2 || len(got.Parts) != 1 || got.own != 0):
			t.Errorf("%s: %+v, %v", name, got, err)
		case c.says != "" && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
	kept := asked{Name: "as it was"}
	empty, err := backend.ReadJSON(httptest.NewRequest(http.MethodPost, "/", http.NoBody), 200, &kept)
	if !empty || err != nil || kept.Name != "as it was" {
		t.Errorf("no body: %t, %v, %+v", empty, err, kept)
	}
}

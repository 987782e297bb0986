package backend_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

type counted struct {
	embedded

	Tags  []string            `json:"tags" most:"3"`
	Env   map[string]string   `json:"env"`
	Where map[string][]string `json:"where"`
	Steps []struct {
		Args []string `json:"args" most:"2"`
	} `json:"steps"`
	Network *struct {
		Allow []string `json:"allow"`
	} `json:"network"`
	Any      any             `json:"any"`
	Document []byte          `json:"document"`
	Raw      json.RawMessage `json:"raw"`
	At       time.Time       `json:"at"`
	Text     string          `json:"text"`
}

type embedded struct {
	Names []string `json:"names"`
}

// TestListsOfARequestAreCounted: wherever in a request a list or an object is, it has as many items at most
// as its field says, or MaxItems.
func TestListsOfARequestAreCounted(t *testing.T) {
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`"x",`, n), ",") + "]" }
	object := func(n int) string {
		var text strings.Builder
		for i := range n {
			text.WriteString(`,"` + strings.Repeat("k", i/26+1) + string(rune('a'+i%26)) + `":"v"`)
		}
		return "{" + strings.TrimPrefix(text.String(), ",") + "}"
	}
	tests := map[string]struct {
		body func(n int) string
		most int
	}{
		"tags":          {func(n int) string { return `{"tags":` + list(n) + `}` }, 3},
		"names":         {func(n int) string { return `{"names":` + list(n) + `}` }, backend.MaxItems},
		"env":           {func(n int) string { return `{"env":` + object(n) + `}` }, backend.MaxItems},
		"where":         {func(n int) string { return `{"where":{"run":["x"],"user":` + list(n) + `}}` }, backend.MaxItems},
		"steps":         {func(n int) string { return `{"steps":[` + strings.TrimSuffix(strings.Repeat(`{},`, n), ",") + `]}` }, backend.MaxItems},
		"steps.args":    {func(n int) string { return `{"steps":[{"args":["x"]},{"args":` + list(n) + `}]}` }, 2},
		"network.allow": {func(n int) string { return `{"network":{"allow":` + list(n) + `}}` }, backend.MaxItems},
		"any":           {func(n int) string { return `{"any":{"deep":[[],` + list(n) + `]}}` }, backend.MaxItems},
	}
	for field, tt := range tests {
		t.Run(field, func(t *testing.T) {
			check := func(n int) error {
				var v counted
				if err := json.Unmarshal([]byte(tt.body(n)), &v); err != nil {
					t.Fatal(err)
				}
				return backend.CheckCounts(&v)
			}
			if err := check(tt.most); err != nil {
				t.Errorf("%d items: %v", tt.most, err)
			}
			err := check(tt.most + 1)
			if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "request's "+field+" has") {
				t.Errorf("%d items: %v", tt.most+1, err)
			}
		})
	}
	long := counted{Document: make([]byte, 1<<20), Raw: json.RawMessage(list(5_000)), Text: strings.Repeat("x", 1<<20), At: time.Now()}
	if err := backend.CheckCounts(&long); err != nil {
		t.Errorf("bytes, texts and JSON that is kept as it is: %v", err)
	}
}

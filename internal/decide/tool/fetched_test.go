package tool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// TestSecretsThatEndWhileAToolRuns: where a secret can't be had any more once a tool was called, its answer is
// not passed on, and its client is told that it was called, and not that it told a secret. The control: where it
// can be had the answer comes, and the secrets are had twice for it: before the call and behind it.
func TestSecretsThatEndWhileAToolRuns(t *testing.T) {
	schema, err := tool.ParseSchema("")
	if err != nil {
		t.Fatal(err)
	}
	for _, ends := range []bool{true, false} {
		fetched := 0
		set, err := tool.NewSet([]tool.Tool{{Name: "a", Schema: schema, Runner: saying{text: "it is done"}}}, func(fetch bool) ([]string, error) {
			if !fetch {
				return nil, nil
			}
			if fetched++; fetched > 1 && ends {
				return nil, errors.New("the vault is away")
			}
			return []string{"a-secret-of-the-set"}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		one, _ := set.Get("a")
		answer, err := one.Call(t.Context(), tool.Call{Arguments: "{}"})
		if fetched != 2 {
			t.Errorf("the secrets are had %d times for a call", fetched)
		}
		switch failure, is := errors.AsType[*tool.Failure](err); {
		case !ends && (err != nil || !strings.Contains(answer, "it is done")):
			t.Errorf("the control: %q, %v", answer, err)
		case ends && (!is || !strings.Contains(failure.Sentence, "was called") || answer != ""):
			t.Errorf("it is answered %q, %v", answer, err)
		}
	}
}

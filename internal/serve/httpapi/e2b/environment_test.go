package e2b

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

func TestEnvironment(t *testing.T) {
	info := sandbox.Info{ID: "sb1", Template: "debian", Labels: map[string]string{labelTemplate: "base"}}
	got := commandEnvironment(info, map[string]string{"A": "1", "E2B_TEMPLATE_ID": "mine"})
	want := map[string]string{"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": "sb1", "E2B_TEMPLATE_ID": "mine", "A": "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := commandEnvironment(info, nil)["E2B_TEMPLATE_ID"]; got != "base" {
		t.Error(got)
	}
}

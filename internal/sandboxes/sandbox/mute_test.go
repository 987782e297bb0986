package sandbox_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// talking is an instance whose agent said something on the host.
type talking struct{ *fake.Instance }

func (talking) Words() string { return "there is no\nmemory left" }

// TestWordsOfOneThatDidNotComeUp: the operator is told what a sandbox did and said whose agent
// never answered, and nothing of it is left.
func TestWordsOfOneThatDidNotComeUp(t *testing.T) {
	t.Parallel()
	d, log := loggedDaemon(t)
	d.engine.Wrap = func(i *fake.Instance) engine.Instance { return talking{i} }
	able := d.create(t, sandbox.Request{}) // the control
	if told := log.String(); strings.Contains(told, "did not come up") {
		t.Fatal(told)
	}
	agent := d.world.Init
	d.world.Init = []string{"/bin/false"}
	if _, err := d.Create(t.Context(), ask(t, sandbox.Request{})); err == nil || !strings.Contains(err.Error(), "did not come up") {
		t.Errorf("created without an agent: %v", err)
	}
	if told := log.String(); strings.Count(told, `words="there is no\nmemory left"`) != 1 {
		t.Errorf("the log has %s", told)
	}
	d.world.Init = agent
	d.wantOnly(t, able.Info().ID)
}

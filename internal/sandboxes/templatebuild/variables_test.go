package templatebuild_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
)

// environs has a shop's sandboxes tell their variables, as a login shell would.
func (s *shop) environs() {
	s.answer = func(c sandbox.Command) (channel.Exit, string) {
		if c.Judged != "env -0" {
			return channel.Exit{}, ""
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		variables := map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/home/user", "LINES": "two\nlines"}
		maps.Copy(variables, s.commands[len(s.commands)-1].Env) // this one's: they come one by one
		var text strings.Builder
		for name, value := range variables {
			text.WriteString(name + "=" + value + "\x00")
		}
		return channel.Exit{}, text.String()
	}
}

// TestVariables: a value names variables, those of the sandbox and those of the steps
// before, and gets what they are before the step; nothing of a shell's is done else.
func TestVariables(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.environs()
	b, log := s.make(templatebuild.Recipe{Base: "debian", Steps: []templatebuild.Step{
		{Type: "ENV", Args: []string{"PATH", "/opt/bin:$PATH", "PLAIN", "no name: $ $1 ${ $(id) `id` \\", "A", "1"}},
		{Type: "ENV", Args: []string{"A", "${A}2", "OLD", "$A", "NONE", "[$NOT_THERE]", "LONG", "$LINES", "AB", "$AB$A"}},
		{Type: "WORKDIR", Args: []string{"$HOME/app-$A"}},
		{Type: "RUN", Args: []string{"echo $A"}},
	}})
	if b.Status != templatebuild.Ready {
		t.Fatalf("%+v\n%s", b, log)
	}
	last := s.commands[len(s.commands)-1]
	want := map[string]string{
		"PATH": "/opt/bin:/usr/bin:/bin", "PLAIN": "no name: $ $1 ${ $(id) `id` \\", "A": "12", "OLD": "1", "NONE": "[]", "LONG": "two\nlines", "AB": "1",
	}
	if !maps.Equal(last.Env, want) || last.Dir != "/home/user/app-12" || last.Judged != "echo $A" {
		t.Errorf("the command: %q in %s with %q", last.Judged, last.Dir, last.Env)
	}
	kept, err := s.Snapshots(t.Context())
	if err != nil || !maps.Equal(kept[0].Built.Env, want) || kept[0].Built.Workdir != "/home/user/app-12" {
		t.Errorf("the result: %+v, %v", kept[0].Built, err)
	}
	if strings.Contains(log, "/usr/bin") || !strings.Contains(log, "[1/4] ENV PATH /opt/bin:$PATH") {
		t.Errorf("the log: %s", log)
	}
}

// TestVariablesThatFail: what can't be asked or is too long ends the build at its step;
// a value that names nothing asks nothing.
func TestVariablesThatFail(t *testing.T) {
	t.Parallel()
	double := templatebuild.Step{Type: "ENV", Args: []string{"A", "$A$A"}}
	for name, c := range map[string]struct {
		steps  []templatebuild.Step
		answer func(c sandbox.Command) (channel.Exit, string)
		step   string
		says   string
	}{
		"the command": {
			steps:  []templatebuild.Step{{Type: "ENV", Args: []string{"B", "1"}}, {Type: "ENV", Args: []string{"A", "$B"}}},
			answer: func(sandbox.Command) (channel.Exit, string) { return channel.Exit{Code: 3}, "" }, step: "2", says: "exit code 3",
		},
		"the environment": {
			steps:  []templatebuild.Step{{Type: "ENV", Args: []string{"A", "$B"}}},
			answer: func(sandbox.Command) (channel.Exit, string) { return channel.Exit{Truncated: true}, "B=1" }, step: "1", says: "more than 1048576 bytes",
		},
		"the length": {
			steps: []templatebuild.Step{{Type: "ENV", Args: []string{"A", strings.Repeat("x", 30<<10)}}, double, double}, step: "3", says: "at most 65536",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.environs()
			if c.answer != nil {
				s.answer = c.answer
			}
			if b, log := s.make(templatebuild.Recipe{Steps: c.steps}); b.Status != templatebuild.Failed || b.Step != c.step || !strings.Contains(b.Reason, c.says) {
				t.Errorf("%+v\n%s", b, log)
			}
			s.nothingLeft()
		})
	}
	s := newShop(t)
	if s.make(templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "ENV", Args: []string{"A", "100$"}}}}); len(s.commands) > 0 {
		t.Errorf("asked was %+v", s.commands)
	}
}

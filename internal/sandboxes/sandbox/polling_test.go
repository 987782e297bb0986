package sandbox

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// TestWatchersPollWhereNoEventComes: behind a kernel of its own a sandbox that shares a
// directory with the host is told of no change that the host makes; behind the host's
// kernel it is, and where nothing is shared there is nothing to miss.
func TestWatchersPollWhereNoEventComes(t *testing.T) {
	t.Parallel()
	for _, wall := range []engine.Wall{engine.WallContainer, engine.WallEmulated, engine.WallUserKernel, engine.WallHardware} {
		for _, shared := range [][]string{nil, {"/workspace"}} {
			want := len(shared) > 0 && wall != engine.WallContainer
			who := identity{info: Info{WritableMounts: shared}}
			who.polls = missesHostEvents(who.info, wall)
			g := &guestCaller{cfg: &Config{ClientEnv: func() map[string]string { return nil }}}
			for name := range pollingEnv() {
				if _, got := g.commandEnvironment(who)[name]; got != want {
					t.Errorf("%s with %v: %s is set: %t, want %t", wall, shared, name, got, want)
				}
			}
			if mode, got := g.commandEnvironment(who)["UV_LINK_MODE"]; got != (len(shared) > 0) || got && mode != "copy" {
				t.Errorf("%s with %v: uv is told %q", wall, shared, mode)
			}
		}
	}
}

// TestPollingIsADefault: the template, the request and nobody else say otherwise.
func TestPollingIsADefault(t *testing.T) {
	t.Parallel()
	g := &guestCaller{cfg: &Config{ClientEnv: func() map[string]string { return nil }}}
	for name := range pollingEnv() {
		for _, who := range []identity{
			{polls: true, env: map[string]string{name: "0"}},
			{polls: true, template: template.Template{Env: map[string]string{name: "0"}}},
		} {
			if got := g.commandEnvironment(who)[name]; got != "0" {
				t.Errorf("%s is %q though it was asked to be 0", name, got)
			}
		}
	}
}

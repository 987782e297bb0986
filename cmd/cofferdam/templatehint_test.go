package main

import (
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// TestAbsentProgramsHaveAHint but on the template host, of which nobody here knows what is in their place.
func TestAbsentProgramsHaveAHint(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{template.NameDebian: {template.WhyAbsent("podman")}, template.NameHost: nil} {
		for _, argv := range [][]string{{"podman", "version"}, {"bash", "-c", "podman version"}} {
			r := &runner{foreground: &foreground{}, argv: argv, box: api.Sandbox{Template: name}}
			if got := r.templateHints(t.Context()); !slices.Equal(got, want) {
				t.Errorf("%v in the template %s: %q, want %q", argv, name, got, want)
			}
		}
	}
}

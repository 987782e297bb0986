package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestOvercommit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Overcommit{
		"":                                    {},
		"overcommit: { memory: 1.5 }":         {Memory: 1.5},
		"overcommit: { memory: 2, cpu: 0.5 }": {Memory: 2, CPU: 0.5},
		"overcommit: { cpu: 2, owner: 0.5 }":  {CPU: 2, Owner: 0.5},
	} {
		if got, err := load(t, text); err != nil || got.Overcommit != want {
			t.Errorf("%s: %+v, %v", text, got.Overcommit, err)
		}
	}
	for _, text := range []string{
		"overcommit: { memory: -1 }", "overcommit: { cpu: .inf }", "overcommit: { cpu: .nan }", "overcommit: { memory: much }", "overcommit: { disk: 1 }", "overcommit: { memory: 24GiB }",
		"overcommit: { owner: 1.5 }", "overcommit: { owner: -0.1 }", "overcommit: { owner: .nan }", "overcommit: { owner: 50% }",
	} {
		if _, err := load(t, text); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "config.yaml") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

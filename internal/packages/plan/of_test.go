package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
)

func TestWhatCannotBePlanned(t *testing.T) {
	t.Parallel()
	for command, why := range map[string]string{
		"":                        "these can be planned: pip install, ",
		"make install":            "these can: pip install",
		"pip download rich":       "these can: pip install",
		"npm run build":           "these can: pip install",
		"cargo add serde":         "go mod download and go install",
		"uv pip install --system": "names no package",
	} {
		if r, err := plan.Of(all.Installers(), strings.Fields(command), installer.Project{}); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q gave %q, %v; want an error about %q", command, r.Argv, err, why)
		}
	}
}

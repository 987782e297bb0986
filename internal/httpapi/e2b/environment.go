package e2b

import (
	"maps"

	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// environment is what clients of this wire find in each command's environment,
// with what they asked for on top. It is given to commands, not to the sandbox: a
// copy has another id.
func environment(info sandbox.Info, asked map[string]string) map[string]string {
	env := map[string]string{"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": info.ID, "E2B_TEMPLATE_ID": templateID(info)}
	maps.Copy(env, asked)
	return env
}

package sandbox

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

const (
	maxEnv  = 1_000
	maxText = 4 << 10 // bytes of a task or one variable's name
)

// checkRequest refuses what no sandbox could be.
func checkRequest(req Request) error {
	if req.Policy == nil {
		return fault.Invalid("a sandbox needs a policy")
	}
	if req.Policy.Lockfiles().Given && req.Lock == nil {
		return fault.Invalid("the policy holds installations to lockfiles, and the request has none")
	}
	if req.Run != "" && !validRun(req.Run) {
		return fault.Invalid("the run id %q is not valid: up to 128 letters, digits, dots, dashes and underscores, starting with a letter or digit", req.Run)
	}
	if len(req.Task) > maxText {
		return fault.Invalid("the task is %d bytes long; at most %d", len(req.Task), maxText)
	}
	if req.Workdir != "" && !strings.HasPrefix(req.Workdir, "/") {
		return fault.Invalid("the working directory %q must be an absolute path of the sandbox", req.Workdir)
	}
	return checkEnv(req.Env)
}

func validRun(id string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`).MatchString(id)
}

// checkEnv refuses what can't be an environment; values are the agent's own
// business and reach nothing of the host.
func checkEnv(env map[string]string) error {
	if len(env) > maxEnv {
		return fault.Invalid("%d environment variables; at most %d", len(env), maxEnv)
	}
	for k, v := range env {
		if k == "" || len(k) > maxText || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return fault.Invalid("the environment variable %q is not valid: a name without = and no NUL bytes", k)
		}
	}
	return nil
}

// policyMounts are the mounts that the policy itself asks for.
func policyMounts(p *policy.Policy) []Mount {
	var mounts []Mount
	for _, m := range p.Mounts() {
		mounts = append(mounts, Mount{Source: m.Source, Destination: m.Destination, ReadWrite: m.ReadWrite})
	}
	return mounts
}

// newSandbox makes one whose list of holds is still missing.
func newSandbox(info Info, p *policy.Policy, inst engine.Instance) *Sandbox {
	return &Sandbox{
		info: info, policy: p, instance: inst, state: Creating,
		commands: map[string]*command{}, lastUsed: info.Created, gone: make(chan struct{}),
	}
}

package sandbox

import (
	"maps"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// placeholders are what a sandbox is to hold in place of its policy's secrets, by their
// names. A copy has its source's: they are in its memory and in its files. It is an error
// if the configuration does not let the policy have a secret, so that no sandbox begins
// that could not do its work.
func (l *planner) placeholders(req Request) (map[string]string, error) {
	if req.Plan { // a plan reaches no host
		return nil, nil //nolint:nilnil // it holds none
	}
	held := map[string]string{}
	if req.from != nil {
		maps.Copy(held, req.from.Of.Placeholders)
	}
	for _, c := range policy.Credentials(req.Policy) {
		d, err := l.cfg.Secrets.Find(c.Secret, c.Host)
		if err == nil {
			err = agrees(req, c, d)
		}
		if err != nil {
			return nil, err
		}
		if held[c.Secret] == "" {
			held[c.Secret] = d.Form.New()
		}
	}
	return held, nil
}

// agrees compares what a policy says of a secret with its declaration and with the request.
func agrees(req Request, c policy.Credential, d secret.Declared) error {
	if c.Header != "" && c.Header != d.How.Header {
		return fault.New(fault.ErrForbidden, "the policy has the secret %q put into the header %s, which is not how the daemon's configuration declares it", c.Secret, c.Header)
	}
	for _, name := range c.Env {
		if _, given := req.Env[name]; given {
			return fault.Invalid("the variable %s has the placeholder of the secret %q by the policy; leave it out of the request", name, c.Secret)
		}
	}
	return nil
}

// placeholderVariables are the variables that a policy gives placeholders to.
func placeholderVariables(p *policy.Policy, placeholders map[string]string) map[string]string {
	env := map[string]string{}
	for _, c := range policy.Credentials(p) {
		for _, name := range c.Env {
			if text := placeholders[c.Secret]; text != "" {
				env[name] = text
			}
		}
	}
	return env
}

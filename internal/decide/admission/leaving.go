package admission

import (
	"context"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// leaving looks at what a registry would hear of a package that a sandbox asks for: names
// and versions are the one text of the guest's that goes there.
type leaving struct {
	c *Controller
	t *tenant
}

// checkAsk refuses an ask with a placeholder in it, which is an alarm; and one with a secret,
// where the policy lets none out in requests.
func (l leaving) checkAsk(ctx context.Context, ask door.OwnerAsk) error {
	text := strings.Join([]string{ask.Package.Name, ask.Version, ask.Asked}, " ")
	at := door.HostPort{Sandbox: ask.Sandbox, Name: "the " + string(ask.Package.Ecosystem) + " registry", Port: registryPort}
	for name, placeholder := range l.t.run.Placeholders {
		for _, form := range exchange.Forms(placeholder) {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(form)) { // some clients change the letters of names
				continue
			}
			a, err := l.c.Leaked(ctx, door.LeakAsk{HostPort: at, Leak: exchange.Leak{Secret: name, Where: "package"}})
			if err != nil {
				return err
			}
			return fault.New(fault.ErrForbidden, "%s; request %s; see: cofferdam why", a.Decision.Reason, a.RequestID)
		}
	}
	return l.secrets(ctx, at, text)
}

// registryPort is the one on which registries are asked.
const registryPort = 443

// secrets looks for secrets. There is no sending them with asterisks: another package would
// be asked for. Personal data are not looked for: versions are made of the same digits.
func (l leaving) secrets(ctx context.Context, at door.HostPort, text string) error {
	outcome := policy.ScanningOf(l.t.policy()).Requests.Secrets
	if outcome == dlp.Off {
		return nil
	}
	_, found := l.c.config.Scans().Text(text, dlp.Plan{Secrets: dlp.Redact})
	for _, f := range found {
		if f.Outcome = dlp.Report; outcome > dlp.Report {
			f.Outcome = dlp.Block
		}
		r := l.c.finding(l.t, PlaceRequests, at.Name+" package", f)
		r, err := l.c.takeFinding(ctx, l.t, r)
		if err != nil {
			return err
		}
		if f.Outcome == dlp.Block {
			return fault.New(fault.ErrForbidden, "it has in it what looks like a secret (%s), and the policy's secret_scanning.requests lets none out; request %s; see: cofferdam why", f.Rule, r.RequestID)
		}
	}
	return nil
}

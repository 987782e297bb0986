package e2b

import (
	"crypto/subtle"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// wake lets a paused sandbox go on before a request that uses it, if its client
// asked for that when it was made. Only who may use it wakes it: with its access
// token or a signature, or at a published port, with the traffic token where one is
// needed. Asking whether it lives is no use, and one of which only files are kept is
// not woken: what its client had running is gone. It then lives for the time that was
// set last.
func (d *Data) wake(r *http.Request, to target) error {
	sb, err := backend.Find(d.cfg.Sandboxes, to.sandbox, backend.AnyOwnersViewer)
	if err != nil {
		return nil //nolint:nilerr // that it is not there is told by who looks for it next
	}
	if state, _ := sb.State(); state != sandbox.Paused || sb.FilesAlone() || !AutoResumes(sb.Info().Labels) || !d.uses(r, to, sb) {
		return nil
	}
	if _, err := d.cfg.Sandboxes.Resume(r.Context(), to.sandbox); err != nil {
		return err
	}
	return d.cfg.Sandboxes.SetLifetime(r.Context(), to.sandbox, sb.Lifetime())
}

// uses reports whether a request may use the sandbox.
func (d *Data) uses(r *http.Request, to target, sb *sandbox.Sandbox) bool {
	switch to.port {
	case dataPort:
		return r.URL.Path != healthPath && d.authorize(r, to.sandbox) == nil
	case interpreterPort:
		return r.URL.Path != healthPath && cellRoutes{d}.authorize(r, to.sandbox) == nil
	default:
		token := d.cfg.Access.Traffic(to.sandbox)
		return sb.Publishes(to.port) && (token == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get(headerTraffic)), []byte(token)) == 1)
	}
}

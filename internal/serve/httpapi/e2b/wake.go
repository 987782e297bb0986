package e2b

import (
	"crypto/subtle"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// wakeTarget lets a paused sandbox go on before a request that uses it, if its client
// asked for that when it was made. Only who may use it wakes it: with its access
// token or a signature, or at a published port, with the traffic token where one is
// needed. Asking whether it lives is no use. One of which only files are kept is
// not woken, since what its client had running is gone, nor one whose agent was silent
// when it was paused. It then lives for the time that was set last.
func (d *Data) wakeTarget(r *http.Request, to target) error {
	sb, err := backend.Find(d.cfg.Sandboxes, to.sandbox, backend.AnyOwnersViewer)
	if err != nil {
		return nil //nolint:nilerr // that it is not there is told by who looks for it next
	}
	if state, _ := sb.State(); state != sandbox.Paused || sb.FilesAlone() || sb.SilentAtPause() || !AutoResumes(sb.Info().Labels) || !d.uses(r, to, sb) {
		return nil
	}
	if _, err := d.cfg.Sandboxes.Resume(r.Context(), to.sandbox); err != nil {
		return err
	}
	return d.cfg.Sandboxes.SetLifetime(r.Context(), to.sandbox, sb.Lifetime())
}

// countRequest counts a request in among those that are under way before anything is waited for, if it may use its sandbox.
// One that may not, or that asks only whether the sandbox lives, is answered at once.
func (d *Data) countRequest(r *http.Request, to target) (leave func(), err error) {
	sb, err := backend.Find(d.cfg.Sandboxes, to.sandbox, backend.AnyOwnersViewer)
	if err != nil || !d.mayUse(r, to) {
		return func() {}, nil //nolint:nilerr // that it is not there is told by who looks for it next
	}
	switch to.port {
	case dataPort, interpreterPort:
		return d.cfg.Underway.Join(roomOf(sb), r)
	default:
		return d.cfg.Visits.Join(roomOf(sb), r)
	}
}

// uses reports whether a request may use the sandbox, and is for something that can be there.
func (d *Data) uses(r *http.Request, to target, sb *sandbox.Sandbox) bool {
	return d.mayUse(r, to) && (to.port == dataPort || to.port == interpreterPort || sb.Publishes(to.port))
}

// mayUse reports whether a request brings what its sandbox asks for.
func (d *Data) mayUse(r *http.Request, to target) bool {
	switch to.port {
	case dataPort:
		return r.URL.Path != healthPath && d.authorize(r, to.sandbox) == nil
	case interpreterPort:
		return r.URL.Path != healthPath && cellRoutes{d}.authorize(r, to.sandbox) == nil
	default:
		token := d.cfg.Access.Traffic(to.sandbox)
		return token == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get(headerTraffic)), []byte(token)) == 1
	}
}

package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
)

// listenAdmin opens the operator's socket: metrics, profiles and health, which no
// client and no sandbox has a way to. Its mode keeps it to this user.
func (d *Daemon) listenAdmin(ctx context.Context) error {
	l, err := listenUnix(ctx, d.opts.Paths.AdminSocket())
	if err != nil {
		return err
	}
	d.health = &health{checks: d.checks()}
	d.watchParts()
	d.serves = append(d.serves, newServer("admin", l, recovering(d.telemetry, d.opts.Log, d.adminRoutes()), d.opts.Log))
	return nil
}

func (d *Daemon) adminRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", d.telemetry.Metrics())
	mux.HandleFunc("GET /healthz", serveAlive)
	mux.HandleFunc("GET /readyz", d.health.serveReady(true))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// listenUnix listens on a path that only this user may connect to. The directory
// is this user's alone, so nobody can come between the two steps.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

package daemon

import (
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/jscall"
)

// startCalls makes what runs code without a sandbox. It compiles nothing before the first
// call.
func startCalls(d *Daemon) error {
	d.calls = jscall.New(jscall.Config{Callers: all.Callers(d.opts.Paths.Compiled()), Default: all.DefaultCaller, Door: d.door})
	return nil
}

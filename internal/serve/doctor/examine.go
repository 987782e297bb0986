package doctor

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// Inputs are the parts of an installation that a report is about. A nil or
// empty part is left out.
type Inputs struct {
	Root  string // of the host's files; "/" if empty
	State string // the state directory
	UID   int    // whose installation it is: os.Geteuid()
	Env   []string
	Runsc string // the configured binary's path
	// Writable are the directories in which sandboxes may write, or could: what lies there is not run. nil: there are none.
	Writable        func() []hostpath.Tree
	Engines         []engine.Engine
	DefaultEngine   string // that must work; the others are told of
	Templates       *template.Store
	DefaultTemplate string
	GatewayUID      int
	// Advisories are the imported facts about packages.
	Advisories *advisory.DB
	// AuditLog is the log's directory; Publishes, whether its checkpoints are to go out.
	AuditLog  string
	Publishes bool
	// Keeper is asked what it is, if one runs.
	Keeper greeter
	// Upstreams finds the registries, as the daemon does.
	Upstreams func(ctx context.Context) (discover.Found, error)
}

// Examine asks all questions. It takes about as long as starting a few
// programs; ctx bounds it.
func Examine(ctx context.Context, in Inputs) Report {
	if in.Root == "" {
		in.Root = "/"
	}
	var r Report
	for _, ask := range []func(context.Context, Inputs) []Check{
		kernel, namespaces, controlGroups, checkRunsc, engines, templates, builders, hostTools, upstreams, advisories, auditLog, theKeeper, gatewayUser, gatewayNetwork, gatewayFiles, stateDirectory, diskSpace,
	} {
		r.Checks = append(r.Checks, ask(ctx, in)...)
	}
	return r
}

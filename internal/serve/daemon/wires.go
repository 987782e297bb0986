package daemon

import (
	"context"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/packages/debian"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/interpreter"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// clients are those who speak to the daemon over the network, and what they may
// choose.
type clients struct {
	store    *store.Tokens
	tokens   *token.Book
	policies *namedpolicy.Store
	room     *backend.Room // for what the requests of all of them hold
	underway *backend.Underway
}

// openClients opens the tokens and the named policies.
func (d *Daemon) openClients(ctx context.Context) (err error) {
	d.clients.room, d.clients.underway = backend.NewRoom(), backend.NewUnderway()
	if d.clients.store, err = store.OpenTokens(ctx, d.opts.Paths.Tokens()); err != nil {
		return err
	}
	kept := markedTokens{Store: d.clients.store, mark: d.opts.Paths.TokensMade(), path: d.opts.Paths.Tokens()}
	if err := kept.checkTokens(ctx); err != nil {
		return err
	}
	if d.clients.tokens, err = token.Open(ctx, kept, d.clock); err != nil {
		return err
	}
	d.clients.policies, err = namedpolicy.Open(d.opts.Paths.NamedPolicies(), d.clients.tokens.Users)
	return err
}

func (d *Daemon) closeClients() {
	if d.clients.store == nil {
		return
	}
	if err := d.clients.store.Close(); err != nil {
		d.opts.Log.Error("the tokens' file did not close well", "err", err)
	}
}

// openWires makes what the TCP listener speaks.
func (d *Daemon) openWires() (apiHandlers, error) {
	listen := d.opts.Config.Listen
	keys, err := e2b.LoadKeys(d.opts.Paths.AccessKey(), d.sandboxes)
	if err != nil {
		return apiHandlers{}, err
	}
	cells := interpreter.New(interpreter.Config{Host: func(id string) (interpreter.Host, error) { return d.sandboxes.Kernels(id) }, Log: d.opts.Log})
	data := e2b.NewData(e2b.DataConfig{
		Sandboxes: d.sandboxes, Access: keys, Clients: d.clients.tokens, Domain: listen.Domain, Interpreter: cells, Room: d.clients.room, Underway: d.clients.underway, Alarms: d.log, Log: d.opts.Log,
	})
	if err := d.openBuilds(); err != nil {
		return apiHandlers{}, err
	}
	uid, gid := backend.GuestIDs()
	control := e2b.NewControl(e2b.Config{
		Sandboxes: d.sandboxes, Tokens: d.clients.tokens, Policies: d.clients.policies, Templates: d.templates, Access: keys, Builds: d.builds, Images: d.opts.Config.Images,
		DefaultTemplate: d.opts.Config.DefaultTemplate, Domain: listen.PublicDomain(), HostUID: uid, HostGID: gid, Room: d.clients.room, Underway: d.clients.underway, Log: d.opts.Log,
		Refused: func(ctx context.Context) { d.api.Refused(ctx, "the E2B protocol") },
	})
	return apiHandlers{control: control, data: data, owns: data.Owns, holds: data.Holds, uploader: control.Uploader, v1: d.api, mcp: openMCP(d)}, nil
}

// openBuilds makes what builds clients' templates.
func (d *Daemon) openBuilds() (err error) {
	if err := os.MkdirAll(d.opts.Paths.Builds(), 0o700); err != nil {
		return err
	}
	archive, err := debian.Open(debian.Config{Dir: d.opts.Paths.Debian(), Log: d.opts.Log, Writable: writableOf(d), Sources: func(ctx context.Context) (debian.Sources, error) {
		found, err := d.templates.Repositories(ctx)
		return debian.Sources(found), err
	}})
	if err != nil {
		return err
	}
	d.builds, err = templatebuild.Open(templatebuild.Config{
		Sandboxes: d.sandboxes, Recorder: d.door, Owed: d.lost.registry.OwesBuild, During: d.clients.tokens.During, Dir: d.opts.Paths.Builds(), Log: d.opts.Log,
		Distribution: d.door,
		Archive: func(ctx context.Context, w debian.Request) (templatebuild.SystemSet, error) {
			set, err := archive.Resolve(ctx, w)
			if err != nil {
				return nil, err
			}
			return set, nil
		},
	})
	return err
}

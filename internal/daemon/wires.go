package daemon

import (
	"context"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/policies"
	"github.com/cofferdam-dev/cofferdam/internal/store"
	"github.com/cofferdam-dev/cofferdam/internal/token"
)

// clients are those who speak to the daemon over the network, and what they may
// choose.
type clients struct {
	store    *store.Tokens
	tokens   *token.Book
	policies *policies.Store
}

// openClients opens the tokens and the named policies.
func (d *Daemon) openClients(ctx context.Context) (err error) {
	if d.clients.store, err = store.OpenTokens(ctx, d.opts.Paths.Tokens()); err != nil {
		return err
	}
	if d.clients.tokens, err = token.Open(ctx, d.clients.store, nil); err != nil {
		return err
	}
	d.clients.policies, err = policies.Open(filepath.Join(d.opts.Paths.Policies(), "named"), d.clients.tokens.Users)
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

// wires are what the TCP listener speaks.
func (d *Daemon) wires() wires {
	return wires{v1: d.api}
}

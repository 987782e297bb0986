package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// caller is who speaks: the user at the other end of the Unix socket, told by the
// kernel, or a token.
type caller struct {
	uid, gid int
	name     string       // for the record
	token    *token.Token // nil: on the Unix socket
}

// mayUse reports whether the caller may use the routes of somebody.
func (c caller) mayUse(w who) bool {
	switch {
	case c.token == nil:
		return true
	case w == admins:
		return c.token.Admin
	default:
		return w == anyone || w == holders
	}
}

// seesAll reports whether the caller sees everybody's things.
func (c caller) seesAll() bool { return c.token == nil || c.token.Admin }

// sourceName is a policy's source as the caller may know it: a token is told what a file of
// the host is called, and not where it lies.
func (c caller) sourceName(source string) string {
	if c.seesAll() || !filepath.IsAbs(source) {
		return source
	}
	return filepath.Base(source)
}

// seesSnapshot reports whether a snapshot of that owner may be shown to the caller, and changed by it.
func (c caller) seesSnapshot(owner sandbox.Owner) bool {
	return c.seesAll() || owner.Token == c.token.ID
}

// viewer tells which sandboxes are there for the caller.
func (c caller) viewer() backend.Viewer {
	switch {
	case c.token == nil:
		return backend.HostViewer
	case c.token.Admin:
		return backend.AnyOwnersViewer
	default:
		return backend.TokenViewer(c.token.ID)
	}
}

// ownerOf is whose the caller's new sandboxes are.
func (c caller) ownerOf() sandbox.Owner {
	if c.token == nil {
		return sandbox.Owner{}
	}
	return backend.OwnerOf(*c.token)
}

// socketKey carries the user at the socket's other end in a connection's context,
// callerKey the caller in a request's.
type (
	socketKey struct{}
	callerKey struct{}
)

// ConnContext is for http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	ctx = backend.LingerContext(ctx, c)
	uc, ok := backend.Innermost(c).(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return ctx
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || credErr != nil {
		return ctx
	}
	who := caller{uid: int(cred.Uid), gid: int(cred.Gid), name: strconv.Itoa(int(cred.Uid))}
	if u, err := user.LookupId(who.name); err == nil {
		who.name = u.Username
	}
	return context.WithValue(ctx, socketKey{}, who)
}

// errUnknown: a request that needs a token has none, or none that holds.
var errUnknown = errors.New("give a valid token, as Authorization: Bearer TOKEN or X-API-Key: TOKEN; cofferdam token create makes one on the daemon's host")

// identify finds out who calls. On the Unix socket the kernel's word counts, and
// a token that comes with the request changes nothing.
func (s *Server) identify(r *http.Request) (caller, error) {
	if c, ok := r.Context().Value(socketKey{}).(caller); ok {
		return c, nil
	}
	secret := backend.Secret(r)
	if secret == "" || s.cfg.Tokens == nil {
		return caller{}, errUnknown
	}
	t, ok := s.cfg.Tokens.Check(secret)
	if !ok {
		return caller{}, errUnknown
	}
	uid, gid := backend.GuestIDs()
	return caller{uid: uid, gid: gid, name: "token " + t.Name, token: &t}, nil
}

// callerOf is who made a request that serve has let in.
func callerOf(ctx context.Context) (caller, error) {
	c, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		return caller{}, fault.New(fault.ErrForbidden, "it is not known who is calling; use the daemon's Unix socket, or a token")
	}
	return c, nil
}

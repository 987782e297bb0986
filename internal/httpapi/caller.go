package httpapi

import (
	"context"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// caller is who is at the other end of the Unix socket, told by the kernel.
type caller struct {
	uid, gid int
	name     string
}

// callerKey carries the caller in a connection's context.
type callerKey struct{}

// ConnContext is for http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	uc, ok := c.(*net.UnixConn)
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
	return context.WithValue(ctx, callerKey{}, who)
}

func callerOf(ctx context.Context) (caller, error) {
	c, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		return caller{}, fault.New(fault.ErrForbidden, "the kernel does not say who is calling; use the daemon's Unix socket")
	}
	return c, nil
}

package engine

import (
	"context"
	"io"
)

// Elevated is a program that an instance runs as root with rights that nothing else in it
// has: to give files away, to write and mark those of others, and to become another user.
type Elevated struct {
	// Program is a file of the host, absolute, that is run in the instance: no path inside
	// leads to it, because what lies there may be anyone's. It is to run Argv[1:], and to
	// end only when nothing of that is left.
	Program string
	Argv    []string
	Env     []string // all of it
	Stdout  io.Writer
	Stderr  io.Writer
}

// PrivilegedRunner is an Instance that runs such programs.
type PrivilegedRunner interface {
	Instance
	// Elevate runs the program to its end and returns its exit code. Its bounding set are the
	// rights, which it can't add to; in its inheritable set is what it needs to make a pid
	// namespace, and gives up before it starts anything. It gains nothing by setuid bits
	// or file capabilities. After an error it may still run, for as long as the instance does.
	Elevate(ctx context.Context, p Elevated) (code int, err error)
}

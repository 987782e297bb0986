package sshserver

import (
	"errors"
	"net"
	"os"
	"time"
)

// Stdio is a connection over two files, such as those that ssh gives its ProxyCommand.
func Stdio(in, out *os.File) net.Conn { return stdio{in, out} }

type stdio struct{ in, out *os.File }

func (s stdio) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s stdio) Write(b []byte) (int, error) { return s.out.Write(b) }
func (s stdio) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }
func (stdio) LocalAddr() net.Addr           { return noAddress{} }
func (stdio) RemoteAddr() net.Addr          { return noAddress{} }

func (s stdio) SetDeadline(t time.Time) error {
	return errors.Join(s.in.SetDeadline(t), s.out.SetDeadline(t))
}
func (s stdio) SetReadDeadline(t time.Time) error  { return s.in.SetReadDeadline(t) }
func (s stdio) SetWriteDeadline(t time.Time) error { return s.out.SetWriteDeadline(t) }

// noAddress is the address of a connection that has none.
type noAddress struct{}

// Network is "stdio".
func (noAddress) Network() string { return "stdio" }

// String is "stdio".
func (noAddress) String() string { return "stdio" }

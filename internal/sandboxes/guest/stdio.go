package guest

import (
	"errors"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// endOfTransmission is what a person types on a terminal to end the input.
const endOfTransmission = 4

// stdio is a command's input and outputs: pipes, or one terminal.
type stdio struct {
	child    [3]*os.File // what the command gets; with a terminal all the same
	outputs  []outputStream
	input    *input
	terminal *terminal // nil without one
	ours     []*os.File
}

// outputStream is one stream of bytes from the command.
type outputStream struct {
	file *os.File
	kind channel.FrameType
}

// newStdio makes what exec asks for. The caller closes the child's part after
// the start, and all of it at the end.
func newStdio(exec *channel.Exec, user channel.User) (*stdio, error) {
	s := &stdio{}
	var err error
	if exec.PTY != nil {
		err = s.useTerminal(*exec.PTY, user)
	} else {
		err = s.usePipes(exec.Stdin)
	}
	if err != nil {
		s.closeChild()
		s.closePipes()
		return nil, err
	}
	return s, nil
}

func (s *stdio) useTerminal(size channel.WindowSize, user channel.User) error {
	master, slave, err := openTerminal(size, user.UID, user.GID)
	if err != nil {
		return err
	}
	s.terminal = &master
	s.child = [3]*os.File{slave, slave, slave}
	s.ours = []*os.File{master.File}
	s.outputs = []outputStream{{master.File, channel.FrameStdout}}
	s.input = newInput(master.File, []byte{endOfTransmission})
	return nil
}

func (s *stdio) usePipes(stdin bool) error {
	if err := s.usePipeForInput(stdin); err != nil {
		return err
	}
	for i, kind := range []channel.FrameType{channel.FrameStdout, channel.FrameStderr} {
		child, ours, err := makePipe(false)
		if err != nil {
			return err
		}
		s.child[i+1] = child
		s.ours = append(s.ours, ours)
		s.outputs = append(s.outputs, outputStream{ours, kind})
	}
	return nil
}

func (s *stdio) usePipeForInput(stdin bool) error {
	if !stdin {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		s.child[0] = null
		s.input = newInput(nil, nil)
		s.input.stopInput()
		return nil
	}
	child, ours, err := makePipe(true)
	if err != nil {
		return err
	}
	s.child[0] = child
	s.ours = append(s.ours, ours)
	s.input = newInput(ours, nil)
	return nil
}

func (s *stdio) resize(size channel.WindowSize) error {
	if s.terminal == nil {
		return errors.New("the command has no terminal to resize")
	}
	return s.terminal.resize(size)
}

// closeChild closes what only the command needs.
func (s *stdio) closeChild() {
	for i, file := range s.child {
		if file != nil && (i == 0 || file != s.child[0]) {
			_ = file.Close()
		}
	}
}

// closePipes closes the agent's part; blocked reads and writes return.
func (s *stdio) closePipes() {
	for _, file := range s.ours {
		_ = file.Close()
	}
}

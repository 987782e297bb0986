package golang

import (
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// HeadPath is where databases have their newest head.
func (Protocol) HeadPath() string { return "latest" }

// Head reads the head that is an answer or, of a lookup, its end.
func (Protocol) Head(verifier string, answer []byte) (int64, error) {
	_, v, err := openVerifier(verifier)
	if err != nil {
		return 0, err
	}
	head := answer
	if _, _, rest, err := tlog.ParseRecord(answer); err == nil {
		head = rest
	}
	n, err := note.Open(head, note.VerifierList(v))
	if err != nil {
		return 0, fault.Wrap(fault.ErrInvalid, err, "the answer has no head that the checksum database signed")
	}
	tree, err := tlog.ParseTree([]byte(n.Text))
	if err != nil {
		return 0, fault.Wrap(fault.ErrInvalid, err, "the checksum database's head can't be read")
	}
	return tree.N, nil
}

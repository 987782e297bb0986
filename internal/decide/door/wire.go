package door

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hashicorp/yamux"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The door's wire: a yamux session whose client side is the gateway. On each
// stream calls follow each other: one message of the gateway, one of the
// daemon. A message is four bytes big-endian length of what follows, one byte
// (the method of a call, the status of a reply), and JSON, strict: unknown and
// duplicate members are refused. A stream that is closed while its call is
// under way cancels the call.

// method names a call.
type method byte

const (
	callIndex method = iota + 1
	callJudge
	callName
	callFailed
	callEdges
	callAborted
	callRefusals
	callTrust
	callOwner
	callEdgesOfIndex
	callPropose
	callSent
	callShow
	callReach
	callOutline
	callPreview
	callWalk
	callAwait
	callServe
	callConnect
	callDisconnected
	callHostRefused
	callStanding
	callReached
	callStopReaching
	callAwaitHost
	callTools
	callCallTool
	callLeaf
	callRequest
	callRequested
	callCredentials
	callSecrets
	callLeaked
	callDeclined
	callScans
	callFoundInRequest
	callAwaitPush
	callBuild
	callReadBuilt
	callAsking
	callResolving
	callLent
)

// messageLimit is the largest message of a call, in bytes. Only an index, with a
// hundred thousand files, is large; so is its answer.
func (m method) messageLimit() int {
	switch m {
	case callIndex, callEdgesOfIndex:
		return maxMessage
	case callEdges, callJudge, callOutline, callPreview, callWalk, callAwait, callServe, callBuild, callPropose: // what one file requires, or brings along
		return 4 << 20
	case callName, callFailed, callAborted, callSent, callShow, callRefusals, callTrust, callOwner, callReach,
		callReached, callStopReaching, callTools, callCallTool, callConnect, callDisconnected, callHostRefused, callStanding, callAwaitHost,
		callLeaf, callRequest, callRequested, callCredentials, callSecrets, callLeaked, callDeclined, callScans, callFoundInRequest, callAwaitPush, callReadBuilt, callAsking, callResolving, callLent:
	}
	return smallMessage
}

const (
	maxMessage   = 64 << 20
	smallMessage = 256 << 10 // a larger one waits for its turn
	// eagerMessage is what is allocated because a length says so; beyond it
	// memory follows the bytes that really come.
	eagerMessage = 64 << 10

	// messageTime is how long a message, once begun, may take.
	messageTime = time.Minute
)

// status of a reply: done, an error that is the daemon's own, or the place of its fault's
// kind in the table. Both ends are of one installation, and of one version.
type status byte

const (
	statusDone status = iota
	statusInternal
	statusFirst // of fault.Kinds
)

// The calls' bodies that are not the Door's own types.
type (
	indexCall struct {
		Ask   IndexAsk `json:"ask"`
		Known []string `json:"known,omitzero"` // epochs whose answers the gateway still has
	}
	indexReply struct {
		Answer IndexAnswer `json:"answer"`
		Same   bool        `json:"same,omitzero"` // the verdicts are those of the known epoch Answer.Epoch
	}
	edgesCall struct {
		Sandbox      string        `json:"sandbox"`
		Parent       pkgref.Ref    `json:"parent"`
		Requirements []Requirement `json:"requirements"`
	}
	edgesOfIndexCall struct {
		Sandbox      string             `json:"sandbox"`
		Project      pkgref.Ref         `json:"project"`
		IndexDigest  string             `json:"index_digest"`
		Requirements []IndexRequirement `json:"requirements"`
	}
	abortedCall struct {
		Sandbox string `json:"sandbox"`
		Seq     uint64 `json:"seq"`
		Sent    int64  `json:"sent"`
	}
	sentCall struct {
		Sandbox string `json:"sandbox"`
		Seq     uint64 `json:"seq"`
	}
	refusalsCall struct {
		Sandbox string `json:"sandbox"`
		Request string `json:"request,omitempty"`
		Max     int    `json:"max"`
	}
	standingCall struct {
		Sandbox     string   `json:"sandbox"`
		Connections []uint64 `json:"connections"`
	}
	toolsCall struct {
		Sandbox string `json:"sandbox"`
	}
	trustCall struct {
		Hosts []string `json:"hosts"`
	}
	nothing      struct{}
	errorMessage struct {
		Sentence string `json:"sentence"`
	}
)

func sessionConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false // the peer is a child process: its death closes the socket
	c.MaxStreamWindowSize = 1 << 20
	c.ConnectionWriteTimeout = 30 * time.Second
	c.LogOutput = io.Discard // what goes wrong is returned
	return c
}

// encodeCall puts a whole message of the gateway's into buf. Whatever a guest has written is said: the
// daemon takes UTF-8 alone, so bytes that are none become U+FFFD here, in every member of every
// message. A refusal that can't be said would have no record.
func encodeCall(buf *bytes.Buffer, m method, ask any) error {
	return encodeMessage(buf, byte(m), ask, jsontext.AllowInvalidUTF8(true))
}

// encodeMessage puts a whole message into buf. Without options text that is not UTF-8 is an error: the
// daemon's answers have values that must not become others.
func encodeMessage(buf *bytes.Buffer, kind byte, body any, options ...json.Options) error {
	buf.Reset()
	buf.Write([]byte{0, 0, 0, 0, kind})
	if err := json.MarshalWrite(buf, body, options...); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the message can't be written as JSON")
	}
	n := buf.Len() - 4
	if n > maxMessage {
		return fault.Invalid("a message of %d bytes is too long for the door", n)
	}
	binary.BigEndian.PutUint32(buf.Bytes(), uint32(n))
	return nil
}

// gate bounds how many of something there are at once.
type gate chan struct{}

// incoming reads messages from a stream.
type incoming struct {
	conn  net.Conn
	limit func(kind byte) int // bytes that a message of a kind may have
	// timeout is how long a message, once begun, may take; 0: no deadline is
	// set. Between messages there is none.
	timeout time.Duration
}

// readHead reads a message's kind and the length of its JSON. io.EOF means that
// there is no more message.
func (m incoming) readHead() (kind byte, n int, err error) {
	var head [5]byte
	if _, err := io.ReadFull(m.conn, head[:1]); err != nil {
		return 0, 0, err
	}
	if err := m.setDeadline(); err != nil {
		return 0, 0, err
	}
	if _, err := io.ReadFull(m.conn, head[1:]); err != nil {
		return 0, 0, cutShort(err)
	}
	length := int64(binary.BigEndian.Uint32(head[:4])) - 1
	if length < 0 || length > int64(m.limit(head[4])) {
		return 0, 0, fault.Invalid("a message of kind %d and %d bytes came to the door", head[4], length)
	}
	return head[4], int(length), nil
}

// readBody reads n bytes into buf. Memory follows what really comes.
func (m incoming) readBody(buf *bytes.Buffer, n int) error {
	if err := m.setDeadline(); err != nil {
		return err
	}
	buf.Reset()
	buf.Grow(min(n, eagerMessage))
	if _, err := io.CopyN(buf, m.conn, int64(n)); err != nil {
		return cutShort(err)
	}
	if m.timeout == 0 {
		return nil
	}
	return m.conn.SetReadDeadline(time.Time{})
}

func (m incoming) setDeadline() error {
	if m.timeout == 0 {
		return nil
	}
	return m.conn.SetReadDeadline(time.Now().Add(m.timeout))
}

// emptied gives a buffer for the next message: a large one is not kept.
func emptied(buf *bytes.Buffer) *bytes.Buffer {
	if buf.Cap() > 4*eagerMessage {
		return new(bytes.Buffer)
	}
	return buf
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func decodeBody(body []byte, into any) error {
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "a message came to the door that is not what it should be")
	}
	return nil
}

// statusOf gives an error's category and the sentence that the other side may
// read; causes stay here.
func statusOf(err error) (status, errorMessage) {
	sentence := "the daemon could not answer"
	f, ok := errors.AsType[*fault.Fault](err)
	if ok {
		sentence = f.Sentence
	}
	kind := fault.KindOf(err)
	if f == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		kind, sentence = fault.KindOf(fault.ErrUnavailable), "the daemon ended the call"
	}
	for i, k := range fault.Kinds() {
		if k.Name == kind.Name {
			return statusFirst + status(i), errorMessage{sentence}
		}
	}
	return statusInternal, errorMessage{sentence}
}

// errorOf is the error that a reply carries.
func errorOf(s status, body []byte) error {
	var m errorMessage
	if err := decodeBody(body, &m); err != nil {
		return err
	}
	if i, kinds := int(s)-int(statusFirst), fault.Kinds(); i >= 0 && i < len(kinds) {
		return kinds[i].Remake(m.Sentence)
	}
	return errors.New(m.Sentence)
}

package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// Events and records are numbered for the whole installation, so that the numbers of two of
// one's own tell how much all others did between them. A token is therefore told a
// *position* in place of a number: the number, enciphered for this token. It can be given
// back, and tells nothing: neither an order nor a distance.
//
// A position has as many bits as every JSON reader keeps of a number.
const (
	positionBits = 52
	halfBits     = positionBits / 2
	halfMask     = 1<<halfBits - 1
	// positionRounds are those of a Feistel network, as many as NIST's FF1 has: its halves are
	// narrow, too.
	positionRounds = 10
)

// positions enciphers numbers with a key of the installation, which must outlive the daemon:
// clients go on from where they stood.
type positions struct{ key []byte }

// newPositions makes them; without a key they end with the process.
func newPositions(key []byte) positions {
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		rand.Read(key) // never fails: it ends the process instead
	}
	return positions{key}
}

// conceal is the position that a token is told for a number. 0, from which all is asked
// for, and what has too many bits to be a number of ours stay as they are.
func (p positions) conceal(token string, number uint64) uint64 {
	return p.walkPosition(token, number, false)
}

// reveal is the number of a position that a token was told. Of what was never told it is
// some number, most likely one that there is not yet.
func (p positions) reveal(token string, position uint64) uint64 {
	return p.walkPosition(token, position, true)
}

// walkPosition enciphers until something else than 0 comes of it, so that it is one to one among
// all others.
func (p positions) walkPosition(token string, n uint64, back bool) uint64 {
	if n == 0 || n >= 1<<positionBits {
		return n
	}
	n = p.permute(token, n, back)
	for n == 0 {
		n = p.permute(token, n, back)
	}
	return n
}

func (p positions) permute(token string, n uint64, back bool) uint64 {
	left, right := n>>halfBits, n&halfMask
	for round := range uint64(positionRounds) {
		if back {
			round = positionRounds - 1 - round
			left, right = right^p.mixRound(token, round, left), left
		} else {
			left, right = right, left^p.mixRound(token, round, right)
		}
	}
	return left<<halfBits | right
}

// mixRound is the round's function: half a position, of all that goes in.
func (p positions) mixRound(token string, round, half uint64) uint64 {
	mac := hmac.New(sha256.New, p.key)
	var in [16]byte
	binary.BigEndian.PutUint64(in[:8], round)
	binary.BigEndian.PutUint64(in[8:], half)
	mac.Write(in[:])         // a hash's writes never fail
	mac.Write([]byte(token)) // the same
	return binary.BigEndian.Uint64(mac.Sum(nil)) & halfMask
}

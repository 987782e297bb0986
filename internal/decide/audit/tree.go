package audit

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"

	"golang.org/x/mod/sumdb/tlog"
)

// frontier is a Merkle tree (RFC 6962, as in golang.org/x/mod/sumdb/tlog) of
// which only the right edge is kept: enough to add leaves and to tell the root.
// Its zero value is the empty tree.
type frontier struct {
	size int64
	// edge has, for each set bit of size, the hash of the whole subtree of that
	// many leaves; the others are meaningless.
	edge [64]tlog.Hash
}

// addLeaf adds a leaf and appends to dst the hashes that it completes: the leaf, then
// its parents upwards. In this order a tree file keeps them (tlog.StoredHashIndex).
func (f *frontier) addLeaf(dst []byte, leaf tlog.Hash) []byte {
	h, level := leaf, 0
	dst = append(dst, h[:]...)
	for ; f.size>>level&1 == 1; level++ {
		h = tlog.NodeHash(f.edge[level], h)
		dst = append(dst, h[:]...)
	}
	f.edge[level] = h
	f.size++
	return dst
}

// rootHash is the root hash; of the empty tree what tlog says.
func (f *frontier) rootHash() tlog.Hash {
	if f.size == 0 {
		h, _ := tlog.TreeHash(0, nil) // can't fail: nothing is read
		return h
	}
	level := bits.TrailingZeros64(uint64(f.size))
	h := f.edge[level]
	for level++; f.size>>level > 0; level++ {
		if f.size>>level&1 == 1 {
			h = tlog.NodeHash(f.edge[level], h)
		}
	}
	return h
}

// loadFrontier reads the right edge of a tree of this size from a tree file.
func loadFrontier(file io.ReaderAt, size int64) (frontier, error) {
	f := frontier{size: size}
	for level := range 63 {
		if size>>level&1 == 1 {
			h, err := storedHash(file, tlog.StoredHashIndex(level, size>>level-1))
			if err != nil {
				return frontier{}, err
			}
			f.edge[level] = h
		}
	}
	return f, nil
}

func storedHash(file io.ReaderAt, index int64) (h tlog.Hash, err error) {
	_, err = file.ReadAt(h[:], index*tlog.HashSize)
	return h, err
}

// treeBytes is the size of the file of a tree of n leaves.
func treeBytes(n int64) int64 { return tlog.StoredHashCount(n) * tlog.HashSize }

// treeReader reads stored hashes for proofs.
func treeReader(file io.ReaderAt) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			h, err := storedHash(file, index)
			if err != nil {
				return nil, err
			}
			hashes[i] = h
		}
		return hashes, nil
	})
}

// hashTree is the tree with its file: all hashes in the order of tlog.StoredHashIndex, 32 bytes
// each. All of it can be made again from the segments; only what a checkpoint covers is known to be
// on the disk.
type hashTree struct {
	frontier

	file   writable
	flat   int64 // bytes of the file that are written
	buffer []byte
}

const treeBuffer = 1 << 20

// pushLeaf adds a leaf; it is in the file after flushLeaves. On an error the leaf was not
// added.
func (t *hashTree) pushLeaf(leaf tlog.Hash) error {
	if len(t.buffer) >= treeBuffer {
		if err := t.writeBuffer(); err != nil {
			return err
		}
	}
	t.buffer = t.addLeaf(t.buffer, leaf)
	return nil
}

// writeBuffer writes the buffer. After an error it is still in the buffer, and the next
// write repeats it at the same place.
func (t *hashTree) writeBuffer() error {
	if err := writeAll(t.file, t.buffer, t.flat); err != nil {
		return fmt.Errorf("write the tree: %w", err)
	}
	t.flat += int64(len(t.buffer))
	t.buffer = t.buffer[:0]
	return nil
}

// flushLeaves makes all leaves durable.
func (t *hashTree) flushLeaves() error {
	if err := t.writeBuffer(); err != nil {
		return err
	}
	if err := uninterrupted(t.file.Datasync); err != nil {
		return fmt.Errorf("sync the tree: %w", err)
	}
	return nil
}

// openFlat opens a tree file for reading; a missing one is empty.
func openFlat(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

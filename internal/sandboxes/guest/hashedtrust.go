package guest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the name that OpenSSL looks for, which protects nothing
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// hashedFolder is where OpenSSL, and what is built on it, looks for a CA by its name's hash
// where the distribution names no bundle to it.
const hashedFolder = "/etc/ssl/certs"

// maxHashed is how many CAs whose names have one hash are told apart.
const maxHashed = 10

// writeHashed puts a CA into the folder, if the template has one, in the place of the one that
// it was before. A link is not followed: it may lead to a folder that is mounted, and then
// somebody else's would have the CA. The agent's log says so.
func (a *Agent) writeHashed(before, ca []byte) error {
	folder := a.config.Root + hashedFolder
	there, err := a.isOwnFolder(hashedFolder)
	if err != nil || !there || bytes.Equal(before, ca) && a.hashed(ca) != "" {
		return err
	}
	if old := a.hashed(before); old != "" {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	hash, ok := nameHash(ca)
	if !ok {
		return nil // no client would find it
	}
	for i := range maxHashed {
		path := filepath.Join(folder, fmt.Sprintf("%s.%d", hash, i))
		_, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return replaceFile(path, ca)
		case err != nil:
			return err
		}
	}
	return nil // that many have its name
}

// isOwnFolder tells whether a folder is there, and no part of its path is a link.
func (a *Agent) isOwnFolder(path string) (bool, error) {
	for end := range len(path) + 1 {
		if end == 0 || end < len(path) && path[end] != '/' {
			continue
		}
		at := a.config.Root + path[:end]
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil // without it nothing reads it
		case err != nil:
			return false, err
		case !info.IsDir():
			a.log.Info("the CA is not among the system's by its name's hash: this is no folder of the template's own", "path", at, "mode", info.Mode().String())
			return false, nil
		}
	}
	return true, nil
}

// hashed is the file of a CA in the folder; "": it is not there.
func (a *Agent) hashed(ca []byte) string {
	hash, ok := nameHash(ca)
	if !ok {
		return ""
	}
	for i := range maxHashed {
		path := filepath.Join(a.config.Root+hashedFolder, fmt.Sprintf("%s.%d", hash, i))
		if content, err := os.ReadFile(path); err == nil && bytes.Equal(content, ca) {
			return path
		}
	}
	return ""
}

// canonical is an attribute's text as it is hashed: with ASCII letters in lower case, and single
// spaces.
func canonical(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) })
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.Join(words, " "))
}

// nameHash is the hash of a certificate's subject as OpenSSL has it (X509_NAME_hash).
func nameHash(certificate []byte) (hash string, ok bool) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return "", false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", false
	}
	var name pkix.RDNSequence
	if _, err := asn1.Unmarshal(cert.RawSubject, &name); err != nil {
		return "", false
	}
	type attribute struct {
		Type  asn1.ObjectIdentifier
		Value string `asn1:"utf8"`
	}
	sum := sha1.New() //nolint:gosec // as above
	for _, part := range name {
		var same []attribute
		for _, one := range part {
			text, is := one.Value.(string)
			if !is {
				return "", false
			}
			same = append(same, attribute{one.Type, canonical(text)})
		}
		der, err := asn1.MarshalWithParams(same, "set")
		if err != nil {
			return "", false
		}
		_, _ = sum.Write(der) // it never fails
	}
	return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(sum.Sum(nil))), true
}

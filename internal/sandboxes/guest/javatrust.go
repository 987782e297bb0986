package guest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the store's own checksum, which protects it from nobody
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unicode/utf16"
)

// javaStores are where distributions keep the roots for Java, which no variable leads
// elsewhere. A Java that was packed for all of them has a store of its own below its home.
func javaStores() []string {
	return []string{"/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts"}
}

// writeJavaTrust replaces those that the template has by a bundle.
func (a *Agent) writeJavaTrust(bundle []byte) error {
	var store []byte
	for _, path := range javaStores() {
		if _, err := os.Stat(a.config.Root + path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if store == nil {
			store = javaStore(bundle)
		}
		if err := replaceFile(a.config.Root+path, store); err != nil {
			return fmt.Errorf("write Java's certificates: %w", err)
		}
	}
	return nil
}

// javaStore is a bundle in Java's older form (JKS), which every version reads, and without
// a password: a newer form that has none reads as empty.
func javaStore(bundle []byte) []byte {
	const magic, version, trusted = 0xfeedfeed, 2, 2
	var certificates [][]byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			certificates = append(certificates, block.Bytes)
		}
	}
	var b bytes.Buffer
	number := func(n uint32) { b.Write(binary.BigEndian.AppendUint32(nil, n)) }
	text := func(s string) { b.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...)) }
	number(magic)
	number(version)
	number(uint32(len(certificates)))
	for i, der := range certificates {
		number(trusted)
		text(fmt.Sprintf("root-%d", i))
		b.Write(make([]byte, 8)) // when it was put in
		text("X.509")
		number(uint32(len(der)))
		b.Write(der)
	}
	sum := sha1.New() //nolint:gosec // as above
	for _, unit := range utf16.Encode([]rune("changeit")) {
		sum.Write(binary.BigEndian.AppendUint16(nil, unit))
	}
	sum.Write([]byte("Mighty Aphrodite"))
	sum.Write(b.Bytes())
	return sum.Sum(b.Bytes())
}

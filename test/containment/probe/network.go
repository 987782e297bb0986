package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// target reads an address the way C programs do: a part may be decimal, octal
// or hexadecimal, and the last part may stand for several.
func target(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return host
	}
	var address uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 33)
		last := i == len(parts)-1
		if err != nil || (!last && n > 255) {
			return host
		}
		if last {
			address |= n
		} else {
			address |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}).String()
}

func split(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(target(host), port), nil
}

func dial(network, address string) (net.Conn, error) {
	full, err := split(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, full)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(attemptTimeout))
}

// say sends a word in a request's clothes and prints what comes back.
func say(conn net.Conn, token string) error {
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /%s HTTP/1.0\r\nHost: %s.example\r\n\r\n", token, token); err != nil {
		return err
	}
	answer := make([]byte, 512)
	n, err := conn.Read(answer)
	fmt.Printf("answered %q %v\n", answer[:n], err)
	return nil
}

// tcp ADDRESS TOKEN
func tcp(args []string) error {
	conn, err := dial("tcp", args[0])
	if err != nil {
		return err
	}
	return say(conn, args[1])
}

// udp ADDRESS TOKEN: datagrams, to a broadcast or multicast address too.
func udp(args []string) error {
	full, err := split(args[0])
	if err != nil {
		return err
	}
	config := net.ListenConfig{Control: allowBroadcast}
	packets, err := config.ListenPacket(context.Background(), "udp", ":0")
	if err != nil {
		return err
	}
	defer packets.Close()
	to, err := net.ResolveUDPAddr("udp", full)
	if err != nil {
		return err
	}
	_, err = packets.WriteTo([]byte(args[1]), to)
	return err
}

// scan ADDRESS FIRST LAST: connect to every port.
func scan(args []string) error {
	first, err1 := strconv.Atoi(args[1])
	last, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	ports := make(chan int)
	var scanners sync.WaitGroup
	for range 64 {
		scanners.Go(func() {
			for port := range ports {
				conn, err := net.DialTimeout("tcp", net.JoinHostPort(args[0], strconv.Itoa(port)), attemptTimeout)
				if err != nil {
					continue
				}
				fmt.Println("open", port)
				_ = conn.Close()
			}
		})
	}
	for port := first; port <= last; port++ {
		ports <- port
	}
	close(ports)
	scanners.Wait()
	return nil
}

// listen ADDRESS NAME: be a neighbour who can be visited over TCP, UDP and an
// abstract socket, and print every visitor's words, until input ends.
func listen(args []string) error {
	streams, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", args[0])
	if err != nil {
		return err
	}
	abstract, err := net.Listen("unix", "@"+args[1])
	if err != nil {
		return err
	}
	for _, l := range []net.Listener{streams, abstract} {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					words := make([]byte, 512)
					_ = conn.SetDeadline(time.Now().Add(attemptTimeout))
					n, _ := conn.Read(words)
					fmt.Printf("visited %q\n", words[:n])
					_, _ = io.WriteString(conn, "welcome")
					_ = conn.Close()
				}()
			}
		}()
	}
	go func() {
		words := make([]byte, 512)
		for {
			n, _, err := packets.ReadFrom(words)
			if err != nil {
				return
			}
			fmt.Printf("visited %q\n", words[:n])
		}
	}()
	fmt.Println("listening")
	return hold(nil)
}

// unixSocket PATH TOKEN: connect to a socket in the file system, or an
// abstract one ("@name").
func unixSocket(args []string) error {
	conn, err := net.DialTimeout("unix", args[0], attemptTimeout)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(attemptTimeout))
	return say(conn, args[1])
}

// Floods by HTTP/3, from another address than honest visitors have: `flood <server> <host> <kind> <connections> <ms>`. Prints what
// came of it as one line of JSON.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const floodFrom = "127.0.0.2"

type flood struct {
	server *net.UDPAddr
	host   string
	kind   string
	until  context.Context
	pool   *quic.Transport
	// Connections that were opened, and those that were refused or ended by the server; requests that were sent.
	Opened atomic.Int64
	Ended  atomic.Int64
	Asked  atomic.Int64
}

func runFlood(words []string) {
	server, err := net.ResolveUDPAddr("udp", words[0])
	check(err)
	count, err := strconv.Atoi(words[3])
	check(err)
	ms, err := strconv.Atoi(words[4])
	check(err)
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(floodFrom)})
	check(err)
	until, cancel := context.WithTimeout(context.Background(), time.Duration(ms)*time.Millisecond)
	defer cancel()
	one := &flood{server: server, host: words[1], kind: words[2], until: until, pool: &quic.Transport{Conn: socket}}
	var all sync.WaitGroup
	for range count {
		all.Add(1)
		go func() {
			defer all.Done()
			for until.Err() == nil {
				one.connection()
			}
		}()
	}
	all.Wait()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]int64{
		"opened": one.Opened.Load(), "ended": one.Ended.Load(), "asked": one.Asked.Load(),
	})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// One connection, until the server ends it or the time is over.
func (f *flood) connection() {
	if f.kind == "garbage" {
		f.garbage()
		return
	}
	short, cancel := context.WithTimeout(f.until, 5*time.Second)
	defer cancel()
	conn, err := f.pool.Dial(short, f.server, &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{"h3"}, ServerName: strings.Split(f.host, ":")[0],
	}, &quic.Config{InitialStreamReceiveWindow: 16384, MaxStreamReceiveWindow: 16384, MaxIdleTimeout: 20 * time.Second})
	if err != nil {
		f.Ended.Add(1)
		pause(f.until, 10)
		return
	}
	f.Opened.Add(1)
	// What waits for room on a stream ends with it.
	stop := context.AfterFunc(f.until, func() { _ = conn.CloseWithError(0x100, "") })
	defer stop()
	defer conn.CloseWithError(0x100, "")
	client := (&http3.Transport{}).NewClientConn(conn)
	for f.until.Err() == nil {
		if conn.Context().Err() != nil {
			f.Ended.Add(1)
			return
		}
		if f.kind == "half-heads" {
			stream, err := conn.OpenStreamSync(f.until)
			if err == nil {
				// A HEADERS frame of 80 bytes, of which one comes.
				_, _ = stream.Write([]byte{1, 0x40, 80, 0})
				f.Asked.Add(1)
			}
			continue
		}
		stream, err := client.OpenRequestStream(f.until)
		if err != nil {
			continue
		}
		f.Asked.Add(1)
		f.request(stream)
		if f.kind == "connections" {
			return
		}
	}
}

func (f *flood) request(stream *http3.RequestStream) {
	request := (&http.Request{
		Method: "GET", Host: f.host, Header: http.Header{},
		URL: &url.URL{Scheme: "https", Host: f.host, Opaque: "/"},
	}).WithContext(f.until)
	switch f.kind {
	case "connections":
		_ = stream.SendRequestHeader(request)
	case "streams":
		_ = stream.SendRequestHeader(request)
		_ = stream.Close()
		go func() { _, _ = stream.ReadResponse() }()
	case "resets":
		_ = stream.SendRequestHeader(request)
		stream.CancelWrite(0x10c)
		stream.CancelRead(0x10c)
	case "heads", "large-heads":
		count := 60
		if f.kind == "large-heads" {
			count = 150
		}
		for at := range count {
			request.Header["x-"+strconv.Itoa(at)] = []string{strings.Repeat("x", 900)}
		}
		_ = stream.SendRequestHeader(request)
		_ = stream.Close()
		go func() { _, _ = stream.ReadResponse() }()
	case "slow":
		request.Method, request.ContentLength = "POST", -1
		_ = stream.SendRequestHeader(request)
		go func() {
			for f.until.Err() == nil {
				if _, err := stream.Write([]byte{0}); err != nil {
					return
				}
				pause(f.until, 100)
			}
		}()
	case "unread":
		request.URL.Opaque = "/big"
		_ = stream.SendRequestHeader(request)
		_ = stream.Close()
	case "uploads":
		request.Method, request.ContentLength = "POST", -1
		_ = stream.SendRequestHeader(request)
		go func() { _, _ = io.Copy(stream, &zeros{64 << 20}) }()
	}
}

func (f *flood) garbage() {
	socket, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(floodFrom)}, f.server)
	check(err)
	defer socket.Close()
	piece := make([]byte, 1200)
	for f.until.Err() == nil {
		for at := range piece {
			piece[at] = byte(rand.Uint32())
		}
		// A long header of version 1, as a first packet has it, every other time.
		if f.Asked.Add(1)%2 == 0 {
			copy(piece, []byte{0xc3, 0, 0, 0, 1, 8})
		}
		_, _ = socket.Write(piece)
	}
}

func pause(until context.Context, ms int) {
	select {
	case <-until.Done():
	case <-time.After(time.Duration(ms) * time.Millisecond):
	}
}

// A visitor that speaks HTTP/3 with code that is not ours: asks the server at os.Args[1]. Takes one JSON request a line, asks them
// all on one connection for each host, and prints one JSON answer a line. `flood` instead: see flood.go.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// What an answer may have on its way while nothing reads it.
const windowBytes = 262_144

type ask struct {
	ID     int         `json:"id"`
	Method string      `json:"method"`
	Host   string      `json:"host"`
	Path   string      `json:"path"`
	Fields [][2]string `json:"fields"`
	Body   string      `json:"body"`
	// Zero bytes in place of Body.
	BodyBytes int64       `json:"bodyBytes"`
	HasLength bool        `json:"hasLength"`
	Trailers  [][2]string `json:"trailers"`
	// Gives the request up after so long.
	CancelMs int `json:"cancelMs"`
	// Is no request: gives up all that are under way.
	GiveUp bool `json:"giveUp"`
	// Reads the answer's body after so long.
	ReadMs int `json:"readMs"`
}

type answer struct {
	ID       int         `json:"id"`
	Status   int         `json:"status"`
	Fields   [][2]string `json:"fields"`
	Interim  []int       `json:"interim"`
	Body     string      `json:"body"`
	Bytes    int64       `json:"bytes"`
	Sum      string      `json:"sum"`
	Trailers [][2]string `json:"trailers"`
	Error    string      `json:"error"`
	// Who the server said it is.
	Certificate string `json:"certificate"`
}

type zeros struct{ left int64 }

func (z *zeros) Read(into []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	count := min(int64(len(into)), z.left)
	clear(into[:count])
	z.left -= count
	return int(count), nil
}

func main() {
	if os.Args[1] == "flood" {
		runFlood(os.Args[2:])
		return
	}
	transport := &http3.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}},
		DisableCompression: true,
		QUICConfig: &quic.Config{
			MaxIdleTimeout:                 20 * time.Second,
			InitialStreamReceiveWindow:     windowBytes,
			MaxStreamReceiveWindow:         windowBytes,
			InitialConnectionReceiveWindow: 4 * windowBytes,
			MaxConnectionReceiveWindow:     4 * windowBytes,
		},
		Dial: func(ctx context.Context, _ string, conf *tls.Config, quicConf *quic.Config) (*quic.Conn, error) {
			return quic.DialAddrEarly(ctx, os.Args[1], conf, quicConf)
		},
	}
	var lock sync.Mutex
	var all sync.WaitGroup
	ctx, giveUp := context.WithCancel(context.Background())
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var one ask
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if one.GiveUp {
			giveUp()
			ctx, giveUp = context.WithCancel(context.Background())
			continue
		}
		all.Add(1)
		under := ctx
		go func() {
			defer all.Done()
			seen := exchange(under, transport, one)
			lock.Lock()
			defer lock.Unlock()
			_ = out.Encode(seen)
		}()
	}
	all.Wait()
	giveUp()
	_ = transport.Close()
}

func exchange(under context.Context, transport *http3.Transport, one ask) answer {
	seen := answer{ID: one.ID}
	ctx, cancel := context.WithCancel(under)
	defer cancel()
	if one.CancelMs > 0 {
		time.AfterFunc(time.Duration(one.CancelMs)*time.Millisecond, cancel)
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			seen.Interim = append(seen.Interim, code)
			return nil
		},
	})
	request := (&http.Request{
		Method: one.Method,
		URL:    &url.URL{Scheme: "https", Host: one.Host, Opaque: one.Path},
		Host:   one.Host,
		Header: fieldsOf(one.Fields),
	}).WithContext(ctx)
	if one.Body != "" || one.BodyBytes > 0 {
		var body io.Reader = bytes.NewReader([]byte(one.Body))
		length := int64(len(one.Body))
		if one.BodyBytes > 0 {
			body, length = &zeros{one.BodyBytes}, one.BodyBytes
		}
		request.Body = io.NopCloser(body)
		request.ContentLength = -1
		if one.HasLength {
			request.ContentLength = length
		}
	}
	if len(one.Trailers) > 0 {
		request.Trailer = fieldsOf(one.Trailers)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		seen.Error = err.Error()
		return seen
	}
	defer response.Body.Close()
	seen.Status = response.StatusCode
	seen.Fields = listOf(response.Header)
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		seen.Certificate = response.TLS.PeerCertificates[0].Subject.CommonName
	}
	time.Sleep(time.Duration(one.ReadMs) * time.Millisecond)
	sum := sha256.New()
	var start bytes.Buffer
	limited := &limitedBuffer{&start, 4096}
	seen.Bytes, err = io.Copy(io.MultiWriter(sum, limited), response.Body)
	if err != nil {
		seen.Error = err.Error()
	}
	seen.Body = start.String()
	seen.Sum = hex.EncodeToString(sum.Sum(nil))
	seen.Trailers = listOf(response.Trailer)
	return seen
}

// Keeps the beginning.
type limitedBuffer struct {
	into *bytes.Buffer
	left int
}

func (l *limitedBuffer) Write(piece []byte) (int, error) {
	kept := min(l.left, len(piece))
	l.into.Write(piece[:kept])
	l.left -= kept
	return len(piece), nil
}

// Each character of a value is a byte.
func fieldsOf(list [][2]string) http.Header {
	fields := http.Header{}
	for _, field := range list {
		var value []byte
		for _, one := range field[1] {
			value = append(value, byte(one))
		}
		fields[field[0]] = append(fields[field[0]], string(value))
	}
	return fields
}

func listOf(fields http.Header) [][2]string {
	list := [][2]string{}
	for name, values := range fields {
		for _, value := range values {
			var text []rune
			for at := range len(value) {
				text = append(text, rune(value[at]))
			}
			list = append(list, [2]string{name, string(text)})
		}
	}
	return list
}

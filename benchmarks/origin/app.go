// The ordinary app on Go: fixed files, an answer in pieces, and POST, on net/http.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
)

func fileBytes(size int) []byte {
	bytes := make([]byte, size)
	for i := 0; i+4 <= size; i += 4 {
		binary.LittleEndian.PutUint32(bytes[i:], uint32(i/4)*2654435761)
	}
	return bytes
}

func main() {
	for name, size := range map[string]int{"20": 20, "1k": 1024, "10k": 10240, "64k": 65536, "100k": 102400, "1m": 1048576} {
		file := fileBytes(size)
		http.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) { w.Write(file) })
	}
	piece := fileBytes(1024)
	http.HandleFunc("/chunked", func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < 8; i++ {
			w.Write(piece[i*128 : (i+1)*128])
			w.(http.Flusher).Flush()
		}
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		bytes, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, bytes)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("listening %d\n", listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}

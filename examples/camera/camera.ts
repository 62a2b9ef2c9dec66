/** A stand-in for a camera: a stream of pictures, as cameras in browsers have it (multipart/x-mixed-replace). */
const picture = (brightness: number): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="320" height="180"><rect width="320" height="180" fill="hsl(210 40% ${brightness}%)"/></svg>`

const server = Bun.serve({
  port: Number(process.env.PORT ?? 8_081),
  idleTimeout: 0,
  fetch(request) {
    const pictures = async function* () {
      for (let at = 0; !request.signal.aborted; at++) {
        yield `--picture\r\nContent-Type: image/svg+xml\r\n\r\n${picture(20 + (at % 60))}\r\n`
        await Bun.sleep(100)
      }
    }
    return new Response(pictures(), {
      headers: { 'content-type': 'multipart/x-mixed-replace; boundary=picture' },
    })
  },
})
console.log(`the camera is on port ${server.port}`)

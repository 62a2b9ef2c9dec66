// The load generator: closed and open loops over HTTP/1.1, TLS, WebSockets and plain bytes. Every answer is compared
// with what it must be, byte for byte; only those count. `load.ts` writes the plan that it reads from stdin.
//
// Open loop: request i is due at start + i / rate. Its latency counts from then, also while no connection is free, so a
// stall delays every request that was due in it (no coordinated omission).

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

enum { RECONNECT = 1, HOLD = 2, BACKGROUND = 4 };
enum { ANSWER_BYTES, ANSWER_HTTP, ANSWER_HEAD_ONLY };
/** Before a connection that failed is opened again: a dead tunnel must not cost a core. */
static const u64 RETRY_NS = 10000000ull;
#define MAX_HEAD 32768
#define MAX_ONE_PIECE 65536

typedef struct {
  const u8 *head, *body, *expected;
  u32 headLength, bodyLength, expectedLength, status, kind, isNamed, nameLength;
} Exchange;

enum State { CLOSED, CONNECTING, HANDSHAKE, UPGRADING, IDLE, BUSY };
enum Body { BODY_LENGTH, BODY_CHUNKED, BODY_UNTIL_CLOSE };

typedef struct {
  int fd;
  SSL *ssl;
  enum State state;
  const Exchange *exchange;
  u32 next, warm, sent, received, headLength;
  u64 began, retryAt;
  int wantsWrite, inBody, closes, counts;
  enum Body body;
  u64 left;
  int chunkState;
  char head[MAX_HEAD];
} Connection;

static struct { char host[64]; u32 port, tls, connections, milliRate, ms, warm, flags, passes, timeoutMs, exchangeCount; } plan;
/** An exchange that takes longer has failed; after the window, what is under way has as long. */
#define TIMEOUT_NS ((u64)plan.timeoutMs * 1000000ull)
static const u8 *upgrade;
static u32 upgradeLength;
static Exchange *exchanges;
static Connection *all;
static SSL_CTX *tls;
static int poller;
static u8 buffer[1 << 18];
static u64 startedAt, endsAt, lastDone, issued, total, ok, failed, wrong, bytes;
static int running, draining;
static volatile sig_atomic_t stopped;
static void stop(int signal_) {
  (void)signal_;
  stopped = 1;
}
static char firstFailure[160];

/* Latencies: buckets of 1/1024 of their value, in units of 100 ns. */
static u64 buckets[48 << 10], samples, sum, worst;
static u32 bucketOf(u64 v) {
  int shift = v < 2048 ? 0 : 53 - __builtin_clzll(v);
  return ((u32)shift << 10) + (u32)(v >> shift);
}
static void record(u64 ns) {
  u64 v = ns / 100;
  buckets[bucketOf(v)]++, samples++, sum += v;
  if (v > worst) worst = v;
}
static double percentile(double percent) {
  u64 rank = (u64)(samples * percent / 100 + 0.999999), seen = 0;
  for (u32 i = 0; i < sizeof buckets / sizeof *buckets; i++) {
    seen += buckets[i];
    if (seen >= rank && seen > 0) {
      u32 shift = i < 2048 ? 0 : (i >> 10) - 1;
      return (double)((u64)(i - (shift << 10)) << shift) / 1e4;
    }
  }
  return worst / 1e4;
}

static u64 now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}
/** Seconds in which this process could run and had no core: they are in each latency. */
static double waited(void) {
  double ran = 0, ns = 0;
  FILE *file = fopen("/proc/self/schedstat", "r");
  if (file && fscanf(file, "%lf %lf", &ran, &ns) != 2) ns = 0;
  if (file) fclose(file);
  return ns / 1e9;
}
static void die(const char *what) {
  fprintf(stderr, "error: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* Connections that are free, and in an open loop the times at which requests were due that found none. */
static u32 *freeRing, freeFrom, freeCount;
static u64 dueIndex, waitingFrom;
static u64 dueAt(u64 index) { return startedAt + index * 1000000000000ull / plan.milliRate; }

static void begin(Connection *c, u64 at);
static void open_(Connection *c, u64 at);

static void forget(Connection *c) {
  if (c->ssl) SSL_free(c->ssl);
  if (c->fd >= 0) close(c->fd);
  c->ssl = NULL, c->fd = -1, c->state = CLOSED, c->retryAt = now() + RETRY_NS;
}

static void after(Connection *c);

/** Set for an answer that came and is not what it must be. */
static int isWrong;
static void fail(Connection *c, const char *why, long detail) {
  if (!*firstFailure) snprintf(firstFailure, sizeof firstFailure, "%s (%ld)", why, detail);
  // In an open loop the requests that wait for a connection count themselves.
  int opening = c->state != IDLE && c->state != BUSY;
  int counted = c->counts || !running || (opening && !plan.milliRate && !draining);
  forget(c);
  if (counted) failed++, wrong += (u64)isWrong;
  isWrong = 0;
  c->counts = 0;
  if (draining || (plan.passes && ok + failed >= plan.passes)) return;
  if (!running) c->warm = plan.warm; // The clock does not wait for a connection that cannot be had.
}

static void bad(Connection *c, const char *why, long detail) {
  isWrong = 1;
  fail(c, why, detail);
}

static void done(Connection *c) {
  u64 at = now();
  if (c->counts) {
    ok++, lastDone = at, bytes += c->exchange->expectedLength + c->exchange->bodyLength;
    record(at - c->began);
  } else if (c->warm < plan.warm) c->warm++;
  c->counts = 0, c->state = IDLE;
  int reconnects = (plan.flags & RECONNECT) && running;
  if (c->closes || reconnects) {
    forget(c);
    c->retryAt = at; // Wanted, not a failure: at once.
    if (running && !plan.milliRate && !draining) open_(c, at);
    return;
  }
  after(c);
}

/** The connection is open and has nothing to do. */
static void after(Connection *c) {
  u64 at = now();
  c->state = IDLE;
  if (!running) {
    if (c->warm < plan.warm) begin(c, at);
    else freeRing[(freeFrom + freeCount++) % plan.connections] = (u32)(c - all);
    return;
  }
  if (draining) return;
  if (!plan.milliRate) {
    if (at < endsAt && !(plan.passes && issued >= plan.passes)) begin(c, at);
    return;
  }
  if (waitingFrom < dueIndex) begin(c, dueAt(waitingFrom++));
  else freeRing[(freeFrom + freeCount++) % plan.connections] = (u32)(c - all);
}

static void watch(Connection *c, int writes) {
  if (c->wantsWrite == writes) return;
  c->wantsWrite = writes;
  struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static long put(Connection *c, const u8 *from, size_t length) {
  if (!c->ssl) return send(c->fd, from, length, MSG_NOSIGNAL);
  int n = SSL_write(c->ssl, from, (int)(length > 1 << 20 ? 1 << 20 : length));
  if (n > 0) return n;
  int why = SSL_get_error(c->ssl, n);
  errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
  return -1;
}
static long take(Connection *c) {
  if (!c->ssl) return recv(c->fd, buffer, sizeof buffer, 0);
  int n = SSL_read(c->ssl, buffer, sizeof buffer);
  if (n > 0) return n;
  int why = SSL_get_error(c->ssl, n);
  if (why == SSL_ERROR_ZERO_RETURN) return 0;
  errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
  return -1;
}

/** Sends what is left of the upgrade or of the request. */
static void flush(Connection *c) {
  const u8 *head = c->state == UPGRADING ? upgrade : c->exchange->head;
  u32 headLength = c->state == UPGRADING ? upgradeLength : c->exchange->headLength;
  u32 length = headLength + (c->state == UPGRADING ? 0 : c->exchange->bodyLength);
  // A small body lies behind its head: both leave in one call, as with curl, wrk and fetch. Two would start the wait of Nagle's
  // algorithm for a delayed acknowledgement in tunnels that leave it on.
  int isOnePiece = c->state != UPGRADING && c->exchange->body == head + headLength;
  while (c->sent < length) {
    int inHead = isOnePiece || c->sent < headLength;
    const u8 *from = inHead ? head + c->sent : c->exchange->body + (c->sent - headLength);
    long n = put(c, from, inHead && !isOnePiece ? headLength - c->sent : length - c->sent);
    if (n < 0 && errno == EAGAIN) return watch(c, 1);
    if (n < 0) return fail(c, "the connection broke while sending", errno);
    c->sent += (u32)n;
  }
  watch(c, 0);
}

static void begin(Connection *c, u64 at) {
  c->exchange = &exchanges[c->next++ % plan.exchangeCount];
  c->state = BUSY, c->began = at, c->sent = c->received = c->headLength = 0, c->inBody = 0, c->closes = 0;
  c->counts = running;
  if (c->counts) issued++;
  c->inBody = c->exchange->kind == ANSWER_BYTES;
  if (c->inBody) c->body = BODY_LENGTH, c->left = c->exchange->expectedLength;
  flush(c);
}

static void ready(Connection *c) {
  if (upgradeLength) {
    c->state = UPGRADING, c->sent = c->headLength = 0;
    return flush(c);
  }
  if (running && !plan.milliRate && !draining) return begin(c, c->began);
  after(c);
}

static void handshake(Connection *c) {
  int n = SSL_connect(c->ssl);
  if (n == 1) return watch(c, 0), ready(c);
  int why = SSL_get_error(c->ssl, n);
  if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return fail(c, "the TLS handshake failed", why);
  watch(c, why == SSL_ERROR_WANT_WRITE);
}

static void connected(Connection *c) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error) return fail(c, "the connection was refused", error);
  if (!plan.tls) return watch(c, 0), ready(c);
  c->ssl = SSL_new(tls);
  SSL_set_fd(c->ssl, c->fd);
  SSL_set_tlsext_host_name(c->ssl, "localhost");
  c->state = HANDSHAKE;
  handshake(c);
}

static void open_(Connection *c, u64 at) {
  if (running && at >= endsAt && !plan.milliRate) return;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->fd < 0) die("socket");
  int one = 1;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)plan.port)};
  inet_pton(AF_INET, plan.host, &to.sin_addr);
  c->state = CONNECTING, c->began = at ? at : now(), c->wantsWrite = 1;
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
  if (connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
    return fail(c, "the connection was refused", errno);
}

/** Body bytes, which must be the ones expected at this place. */
static int same(Connection *c, const u8 *at, size_t length) {
  const Exchange *e = c->exchange;
  if (c->received + length > e->expectedLength) return bad(c, "the answer is longer than it must be", (long)(c->received + length)), 0;
  if (memcmp(at, e->expected + c->received, length)) return bad(c, "wrong bytes in the answer, near", c->received), 0;
  c->received += (u32)length;
  return 1;
}

static int whole(Connection *c) {
  if (c->received != c->exchange->expectedLength) return bad(c, "the answer is shorter than it must be", c->received), 0;
  return done(c), 1;
}

/** Reads chunk by chunk. Returns how many bytes it took, -1 when the exchange is over. */
static long chunks(Connection *c, const u8 *at, size_t length) {
  size_t i = 0;
  while (i < length) {
    if (c->chunkState == 0) { // the size
      u8 b = at[i++];
      if (b == '\n') c->chunkState = c->left ? 1 : 3;
      else if (b >= '0' && b <= '9') c->left = c->left * 16 + b - '0';
      else if ((b | 32) >= 'a' && (b | 32) <= 'f') c->left = c->left * 16 + (b | 32) - 'a' + 10;
    } else if (c->chunkState == 1) { // its bytes
      size_t n = length - i < c->left ? length - i : c->left;
      if (!same(c, at + i, n)) return -1;
      i += n, c->left -= n;
      if (!c->left) c->chunkState = 2;
    } else if (c->chunkState == 2) { // the end of its line
      if (at[i++] == '\n') c->chunkState = 0;
    } else if (c->chunkState == 3) { // behind the last chunk, at the start of a line
      c->chunkState = at[i] == '\n' ? 5 : at[i] == '\r' ? 3 : 4;
      i++;
      if (c->chunkState == 5) {
        if (i < length) return bad(c, "bytes behind the answer", (long)(length - i)), -1;
        return whole(c), -1;
      }
    } else if (at[i++] == '\n') c->chunkState = 3; // in a trailer
  }
  return (long)i;
}

/** A head is there. Returns 0 when the exchange is over. */
static int headed(Connection *c, u32 end) {
  u32 status = (u32)atoi(c->head + 9);
  int chunked = 0, hasLength = 0, isNamed = 0;
  u64 length = 0;
  c->closes = 0;
  const Exchange *e = c->exchange;
  for (char *line = memchr(c->head, '\n', end) + 1; line < c->head + end; line = (char *)memchr(line, '\n', (size_t)(c->head + end - line)) + 1) {
    if (!strncasecmp(line, "content-length:", 15)) hasLength = 1, length = strtoull(line + 15, NULL, 10);
    else if (!strncasecmp(line, "transfer-encoding:", 18)) chunked = 1;
    else if (!strncasecmp(line, "connection: close", 17)) c->closes = 1;
    else if (!strncasecmp(line, "x-answer:", 9)) {
      char *name = line + 9;
      while (*name == ' ') name++;
      isNamed = c->state == BUSY && !memcmp(name, e->head, e->nameLength) && name[e->nameLength] == '\r';
    }
  }
  if (c->state == UPGRADING) {
    if (status != 101) return fail(c, "the upgrade was refused with status", status), 0;
    return 1;
  }
  if (status >= 100 && status < 200) return 1;
  // An error says that the answer is missing; another status of success claims to be one.
  if (status != e->status) return (status < 400 ? bad : fail)(c, "wrong status", status), 0;
  if (e->isNamed && !isNamed) return bad(c, "wrong header lines: X-Answer", 0), 0;
  if (c->exchange->kind == ANSWER_HEAD_ONLY || status == 204 || status == 304) return done(c), 0;
  c->inBody = 1, c->chunkState = 0;
  c->body = chunked ? BODY_CHUNKED : hasLength ? BODY_LENGTH : BODY_UNTIL_CLOSE;
  c->left = hasLength && !chunked ? length : 0;
  if (c->body == BODY_LENGTH && !c->left) return whole(c), 0;
  return 1;
}

static void received(Connection *c, const u8 *at, size_t length) {
  while (length > 0) {
    if (c->state != UPGRADING && c->state != BUSY) return bad(c, "bytes that no request asked for", (long)length);
    if (c->state == UPGRADING || !c->inBody) {
      size_t n = length < MAX_HEAD - 1 - c->headLength ? length : MAX_HEAD - 1 - c->headLength;
      if (!n) return fail(c, "a head that does not end", c->headLength);
      u32 before = c->headLength;
      memcpy(c->head + before, at, n);
      u32 have = before + (u32)n;
      char *end = memmem(c->head + (before > 3 ? before - 3 : 0), have - (before > 3 ? before - 3 : 0), "\r\n\r\n", 4);
      if (!end) {
        c->headLength = have, at += n, length -= n;
        continue;
      }
      u32 headEnd = (u32)(end - c->head) + 4;
      size_t used = headEnd - before;
      c->headLength = 0, at += used, length -= used;
      int upgraded = c->state == UPGRADING;
      c->head[headEnd - 1] = 0;
      if (!headed(c, headEnd - 2)) {
        if (length > 0 && c->fd >= 0 && c->state == IDLE) return bad(c, "bytes behind the answer", (long)length);
        return;
      }
      if (upgraded) return after(c);
      continue;
    }
    if (c->body == BODY_CHUNKED) {
      long n = chunks(c, at, length);
      if (n < 0) return;
      at += n, length -= (size_t)n;
      continue;
    }
    size_t n = c->body == BODY_LENGTH && length > c->left ? c->left : length;
    if (!same(c, at, n)) return;
    at += n, length -= n;
    if (c->body == BODY_LENGTH && !(c->left -= n)) {
      if (length > 0) return bad(c, "bytes behind the answer", (long)length);
      whole(c);
      return;
    }
  }
}

static void ended(Connection *c) {
  if (c->state == BUSY && c->inBody && c->body == BODY_UNTIL_CLOSE) {
    c->closes = 1;
    whole(c);
  } else if (c->state == IDLE) {
    // An idle connection may be closed by the other end. It must not stay in the ring of free ones.
    u32 self = (u32)(c - all), kept = 0;
    for (u32 i = 0; i < freeCount; i++) {
      u32 one = freeRing[(freeFrom + i) % plan.connections];
      if (one != self) freeRing[(freeFrom + kept++) % plan.connections] = one;
    }
    freeCount = kept;
    forget(c);
  } else fail(c, "the connection ended before the answer did", c->received);
}

static void event(Connection *c, u32 events) {
  if (c->state == CONNECTING) {
    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) return;
    return connected(c);
  }
  if (c->state == HANDSHAKE) return handshake(c);
  if ((events & EPOLLOUT) && (c->state == BUSY || c->state == UPGRADING)) flush(c);
  if (c->fd < 0 || !(events & (EPOLLIN | EPOLLERR | EPOLLHUP))) return;
  do {
    long n = take(c);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return n == 0 ? ended(c) : c->state == IDLE ? ended(c) : fail(c, "the connection was reset", errno);
    received(c, buffer, (size_t)n);
  } while (c->ssl && c->fd >= 0 && SSL_pending(c->ssl) > 0);
}

/** Time-outs, and connections to be opened again. */
static u64 lookedAt;
static void look(u64 at) {
  if (at - lookedAt < RETRY_NS) return;
  lookedAt = at;
  for (u32 i = 0; i < plan.connections; i++) {
    Connection *c = &all[i];
    if (c->state == CLOSED) {
      int wanted = !running ? c->warm < plan.warm || plan.milliRate : !draining;
      if (wanted && at >= c->retryAt) open_(c, running && !plan.milliRate ? at : 0);
    } else if (c->state != IDLE && at > c->began + TIMEOUT_NS) fail(c, "no answer in time", c->received);
  }
}

static int busy(void) {
  for (u32 i = 0; i < plan.connections; i++)
    if (all[i].state == BUSY && all[i].counts) return 1;
  return 0;
}

static void turn(u64 until) {
  struct epoll_event events[256];
  u64 at = now();
  u64 wait = until > at ? until - at : 0;
  if (wait > RETRY_NS) wait = RETRY_NS;
  struct timespec timeout = {.tv_nsec = (long)wait};
  int n = epoll_pwait2(poller, events, 256, &timeout, NULL);
  for (int i = 0; i < n; i++) {
    Connection *c = events[i].data.ptr;
    if (c->fd >= 0) event(c, events[i].events);
  }
  look(now());
}

static u8 *input;
static u32 number(void) {
  u32 value;
  memcpy(&value, input, 4);
  input += 4;
  return value;
}
static const u8 *text(u32 *length) {
  *length = number();
  const u8 *at = input;
  input += *length;
  return at;
}
/** Bytes of the plan itself, or of a file that it names. */
static const u8 *content(u32 *length) {
  u32 isFile = number();
  const u8 *at = text(length);
  if (!isFile) return at;
  char path[4096];
  snprintf(path, sizeof path, "%.*s", (int)*length, at);
  int fd = open(path, O_RDONLY);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) < 0) die(path);
  *length = (u32)info.st_size;
  at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  close(fd);
  return at;
}

static void readPlan(void) {
  size_t length = 0, room = 1 << 16;
  u8 *all_ = malloc(room);
  for (ssize_t n; (n = read(0, all_ + length, room - length)) > 0;)
    if ((length += (size_t)n) == room) all_ = realloc(all_, room *= 2);
  input = all_;
  u32 hostLength;
  const u8 *host = text(&hostLength);
  snprintf(plan.host, sizeof plan.host, "%.*s", (int)hostLength, host);
  u32 *fields[] = {&plan.port, &plan.tls, &plan.connections, &plan.milliRate, &plan.ms, &plan.warm, &plan.flags, &plan.passes, &plan.timeoutMs};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) *fields[i] = number();
  upgrade = text(&upgradeLength);
  plan.exchangeCount = number();
  exchanges = calloc(plan.exchangeCount, sizeof *exchanges);
  for (u32 i = 0; i < plan.exchangeCount; i++) {
    Exchange *e = &exchanges[i];
    e->kind = number(), e->status = number(), e->isNamed = number();
    e->head = text(&e->headLength);
    e->body = content(&e->bodyLength);
    // Method and path, which the app repeats in a header line.
    const u8 *end = memmem(e->head, e->headLength, " HTTP/1.1\r\n", 11);
    e->nameLength = end ? (u32)(end - e->head) : 0;
    if (e->bodyLength && e->headLength + e->bodyLength <= MAX_ONE_PIECE) {
      u8 *one = malloc(e->headLength + e->bodyLength);
      memcpy(one, e->head, e->headLength);
      e->body = memcpy(one + e->headLength, e->body, e->bodyLength);
      e->head = one;
    }
    e->expected = content(&e->expectedLength);
  }
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_TIMERSLACK, 1);
  readPlan();
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  poller = epoll_create1(EPOLL_CLOEXEC);
  if (plan.tls) tls = SSL_CTX_new(TLS_client_method());
  freeRing = calloc(plan.connections, sizeof *freeRing);
  all = calloc(plan.connections, sizeof *all);
  // Opened before the clock starts, fifty at a time: fewer than any listen backlog.
  u64 deadline = now() + TIMEOUT_NS * (1 + plan.connections / 1000);
  u32 begun = 0, failedBefore = 0;
  for (u32 i = 0; i < plan.connections; i++) all[i].fd = -1, all[i].next = i, all[i].retryAt = ~0ull;
  while (freeCount + failedBefore < plan.connections && now() < deadline) {
    while (begun < plan.connections && begun < freeCount + failedBefore + 50) open_(&all[begun++], 0);
    turn(now() + RETRY_NS);
    failedBefore = 0;
    for (u32 i = 0; i < begun; i++) failedBefore += all[i].state == CLOSED && all[i].warm >= plan.warm;
  }
  if (plan.flags & HOLD) {
    printf("held %u\n", freeCount);
    fflush(stdout);
    for (;;) pause();
  }
  // Where each request has a connection of its own, none is left open.
  u64 notOpened = plan.flags & RECONNECT ? 0 : plan.connections - freeCount, warmFailures = failed;
  failed = 0, running = 1, startedAt = lastDone = now(), endsAt = startedAt + plan.ms * 1000000ull;
  double waitedBefore = waited();
  if (plan.flags & BACKGROUND) signal(SIGTERM, stop);
  printf("started\n");
  fflush(stdout);
  if (plan.milliRate) {
    total = (u64)plan.milliRate * plan.ms / 1000000;
    while (dueIndex < total) {
      u64 at = now();
      while (dueIndex < total && dueAt(dueIndex) <= at) {
        u64 due = dueAt(dueIndex++);
        if (!freeCount) continue; // It waits: `after` takes the oldest of those.
        Connection *c = &all[freeRing[freeFrom]];
        freeFrom = (freeFrom + 1) % plan.connections, freeCount--, waitingFrom = dueIndex;
        begin(c, due);
      }
      turn(dueIndex < total ? dueAt(dueIndex) : at);
    }
    u64 grace = now() + TIMEOUT_NS;
    while ((waitingFrom < dueIndex || busy()) && now() < grace) turn(now() + RETRY_NS);
    failed += dueIndex - waitingFrom;
  } else {
    u32 count = freeCount;
    for (u32 i = 0; i < count; i++) {
      Connection *c = &all[freeRing[(freeFrom + i) % plan.connections]];
      if (plan.flags & RECONNECT) forget(c), open_(c, now());
      else if (!plan.passes || issued < plan.passes) begin(c, now());
    }
    freeCount = 0;
    for (u32 i = 0; i < plan.connections; i++) if (all[i].state == CLOSED) all[i].retryAt = 0;
    while (now() < endsAt && !stopped && !(plan.passes && ok + failed >= plan.passes)) turn(endsAt);
  }
  draining = 1;
  u64 grace = now() + TIMEOUT_NS;
  while (!stopped && busy() && now() < grace) turn(now() + RETRY_NS);
  for (u32 i = 0; i < plan.connections; i++) {
    if (all[i].state != BUSY || !all[i].counts) continue;
    if (stopped) bytes += all[i].received; // It was under way.
    else failed++;
  }
  if (stopped && !bytes && !failed) failed = 1, snprintf(firstFailure, sizeof firstFailure, "nothing came");
  if (!ok && !failed && !stopped) failed = notOpened ? notOpened : 1;
  // A tunnel that answers nothing for a while did so in the time that is measured.
  u64 least = plan.passes || stopped ? 0 : plan.ms * 1000000ull, took = lastDone - startedAt;
  double seconds = (took > least ? took : plan.ms * 1000000ull) / 1e9;
  double waitedSeconds = waited() - waitedBefore;
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  if (!*firstFailure && failed) snprintf(firstFailure, sizeof firstFailure, "%llu connections could not be opened", (unsigned long long)notOpened);
  for (char *at = firstFailure; *at; at++) if (*at == '"' || *at == '\\') *at = ' ';
  printf("REPORT {\"ok\":%llu,\"failed\":%llu,\"wrong\":%llu,\"notOpened\":%llu,\"warmFailures\":%llu,\"seconds\":%.6f,\"bytes\":%llu,\"cpuSeconds\":%.3f,\"waitedSeconds\":%.4f,\"samples\":%llu,"
         "\"mean\":%.4f,\"p50\":%.4f,\"p90\":%.4f,\"p95\":%.4f,\"p99\":%.4f,\"p999\":%.4f,\"max\":%.4f,\"failure\":\"%s\"}\n",
         (unsigned long long)ok, (unsigned long long)failed, (unsigned long long)wrong, (unsigned long long)notOpened, (unsigned long long)warmFailures, seconds,
         (unsigned long long)bytes, cpu, waitedSeconds, (unsigned long long)samples, samples ? sum / 1e4 / samples : 0, percentile(50), percentile(90), percentile(95),
         percentile(99), percentile(99.9), worst / 1e4, firstFailure);
  return 0;
}

// A server of the vfio-user protocol (QEMU, docs/interop/vfio-user.rst), version 0.0: one client at a Unix domain socket.
//
// The client is a virtual machine, or any other program with the client's side of the protocol. Its memory is mapped
// here; interrupts are event file descriptors. A Device has
//   void access(bool write, bool config, uint64_t offset, uint32_t count, uint8_t* data)   configuration space, or BAR0
//   void reset()                                                                           of the link

#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// Memory of the client, by the device's addresses.
class DeviceMemory {
 public:
  ~DeviceMemory() { clear(); }

  // Takes the file descriptor; -1: addresses without memory. Returns 0 or an errno.
  int map(uint64_t address, uint64_t size, int file, uint64_t offset) {
    uint8_t* base = nullptr;
    if (file >= 0) {
      const int error = whole(file, base);
      close(file);
      if (error) return error;
      base += offset;
    }
    ranges_[address] = {size, base};
    return 0;
  }
  void unmap(uint64_t address, uint64_t size) {
    ranges_.erase(ranges_.lower_bound(address), ranges_.lower_bound(address + size));
  }
  void clear() {
    ranges_.clear();
    for (auto& [id, file] : files_) munmap(file.first, file.second);
    files_.clear();
  }

  // Copies into memory. Returns whether all of it is mapped; if not, nothing is written.
  bool write(uint64_t address, const uint8_t* data, uint64_t size) {
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return false;
    --range;
    const uint64_t at = address - range->first;
    if (!range->second.base || at > range->second.size || size > range->second.size - at) return false;
    std::memcpy(range->second.base + at, data, size);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return true;
  }

 private:
  struct Range {
    uint64_t size;
    uint8_t* base;
  };

  // The mapping of a whole file. A machine maps its memory page by page, from few files.
  int whole(int file, uint8_t*& base) {
    struct stat status {};
    if (fstat(file, &status)) return errno;
    auto& known = files_[{status.st_dev, status.st_ino}];
    if (!known.first) {
      void* at = mmap(nullptr, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (at == MAP_FAILED) return errno;
      known = {static_cast<uint8_t*>(at), status.st_size};
    }
    base = known.first;
    return 0;
  }

  std::map<uint64_t, Range> ranges_;
  std::map<std::pair<dev_t, ino_t>, std::pair<uint8_t*, uint64_t>> files_;
};

template <class Device> class VfioUser {
 public:
  explicit VfioUser(Device& device) : device_(device) {}
  ~VfioUser() {
    leave();
    if (listener_ >= 0) {
      close(listener_);
      unlink(path_.c_str());
    }
  }

  DeviceMemory memory;

  // Returns 0 or an errno.
  int listen(const char* path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof name.sun_path) return ENAMETOOLONG;
    std::strcpy(name.sun_path, path);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener_ < 0) return errno;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name) || ::listen(listener_, 1)) {
      const int error = errno;
      close(listener_);
      listener_ = -1;
      return error;
    }
    path_ = path;
    return 0;
  }

  bool connected() const { return peer_ >= 0; }
  bool listens() const { return trigger_ >= 0; }

  bool interrupt() {
    const uint64_t one = 1;
    return trigger_ >= 0 && ::write(trigger_, &one, sizeof one) == sizeof one;
  }

  // Waits for a message, or for a client, and carries out all that have come. Returns whether there was anything.
  bool serve(int milliseconds) {
    pollfd waits{connected() ? peer_ : listener_, POLLIN, 0};
    if (poll(&waits, 1, milliseconds) <= 0) return false;
    if (!connected()) {
      peer_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      return connected();
    }
    do {
      if (!message()) {
        leave();
        return true;
      }
      waits.fd = peer_;
    } while (poll(&waits, 1, 0) > 0);
    return true;
  }

  // Ends the connection; the client finds its device gone.
  void leave() {
    if (!connected()) return;
    close(peer_);
    peer_ = -1;
    silence();
    drop();
    memory.clear();
    device_.reset();
  }

 private:
  enum Command : uint16_t {
    VERSION = 1, DMA_MAP, DMA_UNMAP, DEVICE_INFO, REGION_INFO, REGION_FDS, IRQ_INFO, SET_IRQS, REGION_READ,
    REGION_WRITE, DMA_READ, DMA_WRITE, DEVICE_RESET
  };
  static constexpr uint32_t MESSAGE_MAX = 1 << 16, TRANSFER_MAX = 4096;
  static constexpr uint32_t CONFIG = 7, REGIONS = 9, MSI = 1, IRQS = 5;

  struct Header {
    uint16_t id, command;
    uint32_t size, flags, error;
  };

  // Fields of a message, by their offset.
  template <class T> T field(std::size_t at) const {
    T value{};
    if (at + sizeof value <= body_.size()) std::memcpy(&value, &body_[at], sizeof value);
    return value;
  }
  template <class T> void put(std::size_t at, T value) {
    if (answer_.size() < at + sizeof value) answer_.resize(at + sizeof value);
    std::memcpy(&answer_[at], &value, sizeof value);
  }

  bool receive(void* to, std::size_t size) {
    auto* at = static_cast<uint8_t*>(to);
    while (size) {
      alignas(cmsghdr) char room[CMSG_SPACE(8 * sizeof(int))];
      iovec part{at, size};
      msghdr head{};
      head.msg_iov = &part;
      head.msg_iovlen = 1;
      head.msg_control = room;
      head.msg_controllen = sizeof room;
      const ssize_t count = recvmsg(peer_, &head, MSG_CMSG_CLOEXEC);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      for (cmsghdr* c = CMSG_FIRSTHDR(&head); c; c = CMSG_NXTHDR(&head, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t files = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < files; ++i) {
          int file;
          std::memcpy(&file, CMSG_DATA(c) + i * sizeof file, sizeof file);
          files_.push_back(file);
        }
      }
      at += count;
      size -= static_cast<std::size_t>(count);
    }
    return true;
  }

  // One message and its answer. Returns whether the client is still there.
  bool message() {
    Header head{};
    if (!receive(&head, sizeof head) || head.size < sizeof head || head.size > MESSAGE_MAX) return false;
    body_.resize(head.size - sizeof head);
    if (!body_.empty() && !receive(body_.data(), body_.size())) return false;
    answer_.clear();
    const int error = carry_out(head.command);
    drop();
    if (head.flags & 0x10) return true;       // no answer is wanted
    if (error) answer_.clear();
    head.flags = 1 | (error ? 0x20 : 0);
    head.error = static_cast<uint32_t>(error);
    head.size = static_cast<uint32_t>(sizeof head + answer_.size());
    std::vector<uint8_t> whole(head.size);
    std::memcpy(whole.data(), &head, sizeof head);
    std::copy(answer_.begin(), answer_.end(), whole.begin() + sizeof head);
    for (std::size_t sent = 0; sent < whole.size();) {
      const ssize_t count = send(peer_, &whole[sent], whole.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }

  int carry_out(uint16_t command) {
    switch (command) {
      case VERSION: {
        const std::string capabilities = R"({"capabilities":{"max_msg_fds":8,"max_data_xfer_size":4096}})";
        put(0, uint32_t{0});
        answer_.insert(answer_.end(), capabilities.c_str(), capabilities.c_str() + capabilities.size() + 1);
        return 0;
      }
      case DMA_MAP: {
        const int file = files_.empty() ? -1 : files_.front();
        if (file >= 0) files_.erase(files_.begin());
        return memory.map(field<uint64_t>(16), field<uint64_t>(24), file, field<uint64_t>(8));
      }
      case DMA_UNMAP:
        memory.unmap(field<uint64_t>(8), field<uint64_t>(16));
        answer_.assign(body_.begin(), body_.begin() + std::min<std::size_t>(body_.size(), 24));
        return 0;
      case DEVICE_INFO:
        for (std::size_t i = 0; i < 4; ++i) put(4 * i, std::array<uint32_t, 4>{16, 3, REGIONS, IRQS}[i]);
        return 0;
      case REGION_INFO: return region_info();
      case IRQ_INFO:
        for (std::size_t i = 0; i < 4; ++i)
          put(4 * i, std::array<uint32_t, 4>{16, 1, field<uint32_t>(8), field<uint32_t>(8) == MSI}[i]);
        return 0;
      case SET_IRQS: return set_irqs();
      case REGION_READ: return region(false);
      case REGION_WRITE: return region(true);
      case DEVICE_RESET: device_.reset(); return 0;
      default: return ENOTSUP;
    }
  }

  int region_info() {
    const uint32_t index = field<uint32_t>(8);
    if (index >= REGIONS) return EINVAL;
    const uint32_t size = index == 0 ? BAR0_BYTES : index == CONFIG ? ConfigSpace::SIZE : 0;
    put(0, uint32_t{32});
    put(4, size ? 3u : 0u);       // can be read and written
    put(8, index);
    put(12, uint32_t{0});
    put(16, uint64_t{size});
    put(24, uint64_t{0});
    return 0;
  }

  // Flags: bit 2 event file descriptors; bit 5 they are triggered.
  int set_irqs() {
    const uint32_t flags = field<uint32_t>(4), index = field<uint32_t>(8), count = field<uint32_t>(16);
    if (index != MSI || !(flags & 1u << 5)) return 0;
    silence();
    if (flags & 1u << 2 && count == 1 && !files_.empty()) {
      trigger_ = files_.front();
      files_.erase(files_.begin());
    }
    return 0;
  }

  int region(bool write) {
    const uint64_t offset = field<uint64_t>(0);
    const uint32_t index = field<uint32_t>(8), count = field<uint32_t>(12);
    const uint64_t size = index == 0 ? BAR0_BYTES : index == CONFIG ? ConfigSpace::SIZE : 0;
    if (count > TRANSFER_MAX || offset > size || count > size - offset || (write && body_.size() < 16 + count))
      return EINVAL;
    answer_.assign(body_.begin(), body_.begin() + 16);
    if (!write) answer_.resize(16 + count);
    device_.access(write, index == CONFIG, offset, count, write ? &body_[16] : &answer_[16]);
    return 0;
  }

  void silence() {
    if (trigger_ >= 0) close(trigger_);
    trigger_ = -1;
  }
  // Closes the file descriptors that came with a message and were not wanted.
  void drop() {
    for (const int file : files_) close(file);
    files_.clear();
  }

  Device& device_;
  std::string path_;
  int listener_ = -1, peer_ = -1, trigger_ = -1;
  std::vector<int> files_;
  std::vector<uint8_t> body_, answer_;
};

// Writes the slots of places that leave, each for itself or several in one cold block.
#include "codegen/leaving.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "codegen/reconverge.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace gpurun::codegen {
namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::PHINode;
using llvm::Value;
using translate::SlotValue;

constexpr const char *leave_name = "gpurun_leave", *bundle_name = "deopt";

// A cold block is fed from so many places at the most: what each adds to it is bounded. All that
// any of them has live is there at once, and on GPUs that is dear: so many slots, or twice as many
// as its first place has.
constexpr usize sites_per_block = 128;
constexpr u32 slots_per_block = 256;

// Slots and words of a place, as one number.
u32 pack(SlotValue place) { return place.slot * 8 + place.words; }
SlotValue unpack(u32 number) { return {number / 8, number % 8}; }

u32 number_of(const Value* constant) {
    return u32(llvm::cast<llvm::ConstantInt>(constant)->getZExtValue());
}

// A place where a function leaves.
struct Site {
    CallInst* call;
    LeaveKind kind;
    u32 limit;
    std::vector<LeftSlot> slots;

    explicit Site(CallInst* made)
        : call(made),
          kind(LeaveKind(number_of(made->getArgOperand(0)))),
          limit(number_of(made->getArgOperand(2))) {
        const llvm::OperandBundleUse bundle = made->getOperandBundleAt(0);
        for (usize i = 0; i < bundle.Inputs.size(); i += 2)
            slots.push_back({unpack(number_of(bundle.Inputs[i])), bundle.Inputs[i + 1]});
    }
    BasicBlock* block() const { return call->getParent(); }
    Value* fp() const { return call->getArgOperand(1); }
    u32 words() const {
        u32 sum = 0;
        for (const LeftSlot& slot : slots) sum += slot.place.words;
        return sum;
    }
};

class LeaveExpander {
public:
    explicit LeaveExpander(llvm::Function& function)
        : function_(function), b_(function.getContext()) {}

    void run() {
        std::vector<Site> sites;
        for (BasicBlock& block : function_)
            for (llvm::Instruction& instruction : block)
                if (auto* call = llvm::dyn_cast<CallInst>(&instruction))
                    if (const llvm::Function* callee = call->getCalledFunction();
                        callee && callee->getName() == leave_name)
                        sites.emplace_back(call);
        if (sites.empty()) return;
        choose(sites);
        for (const auto& [group, members] : groups_)
            if (members.size() == 1)
                write_at(*members[0]);
            else
                build_cold(members);
        for (const Site& site : sites) site.call->eraseFromParent();
        for (CallInst* call : writes_) {
            llvm::InlineFunctionInfo info;
            CHECK(llvm::InlineFunction(*call, info).isSuccess());
        }
    }

private:
    using Group = std::vector<const Site*>;

    void choose(const std::vector<Site>& sites) {
        const bool lanes_meet = function_.hasFnAttribute(meets_attribute);
        const llvm::DominatorTree dominators(function_);
        const llvm::LoopInfo loops(dominators);
        auto is_from_loop = [&](BasicBlock* block) {
            return loops.getLoopFor(block) ||
                   std::ranges::any_of(llvm::predecessors(block),
                                       [&](BasicBlock* from) { return loops.getLoopFor(from); });
        };
        struct Room {
            u32 group;
            std::map<u32, bool> slots;
            u32 most;
        };
        std::map<std::pair<u32, BasicBlock*>, Room> newest;
        u32 count = 0;
        for (const Site& site : sites) {
            BasicBlock* next = site.block()->getSingleSuccessor();
            if (!next || (lanes_meet && is_from_loop(site.block()))) {
                groups_[count++].push_back(&site);
                continue;
            }
            auto [found, is_new] = newest.try_emplace({u32(site.kind), next});
            Room& room = found->second;
            auto add = [&] {
                for (const LeftSlot& slot : site.slots)
                    for (u32 i = 0; i < slot.place.words; i++) room.slots[slot.place.slot + i];
            };
            if (!is_new) {
                const std::map<u32, bool> before = room.slots;
                add();
                if (groups_[room.group].size() == sites_per_block ||
                    room.slots.size() > room.most) {
                    room.slots = before;
                    is_new = true;
                }
            }
            if (is_new) {
                room = {count++, {}, std::max(slots_per_block, 2 * site.words())};
                add();
            }
            groups_[room.group].push_back(&site);
        }
    }

    void write(Value* fp, u32 slot, u32 words, Value* value) {
        llvm::Function* writer = function_.getParent()->getFunction(slot_writers[words == 1   ? 0
                                                                                 : words == 2 ? 1
                                                                                              : 2]);
        writes_.push_back(b_.CreateCall(writer, {fp, b_.getInt32(slot), value}));
    }

    void write_at(const Site& site) {
        b_.SetInsertPoint(site.call);
        for (const LeftSlot& slot : site.slots)
            write(site.fp(), slot.place.slot, slot.place.words, slot.value);
    }

    // Puts a block between the sites and the one that they all go to.
    void build_cold(const Group& sites) {
        // A place that always holds the same kind of value is written as that; others word by word.
        std::map<u32, u32> kind_of;  // slot -> its place, or mixed
        constexpr u32 mixed = ~u32{0};
        for (const Site* site : sites)
            for (const LeftSlot& slot : site->slots)
                for (u32 i = 0; i < slot.place.words; i++) {
                    auto [kind, is_new] =
                        kind_of.try_emplace(slot.place.slot + i, pack(slot.place));
                    if (!is_new && kind->second != pack(slot.place)) kind->second = mixed;
                }
        auto is_whole = [&](SlotValue place) {
            for (u32 i = 0; i < place.words; i++)
                if (kind_of[place.slot + i] == mixed) return false;
            return true;
        };
        std::map<u32, u32> words_at;  // first slot -> words
        for (const Site* site : sites)
            for (const LeftSlot& slot : site->slots) {
                if (is_whole(slot.place))
                    words_at[slot.place.slot] = slot.place.words;
                else
                    for (u32 i = 0; i < slot.place.words; i++) words_at[slot.place.slot + i] = 1;
            }

        BasicBlock* last = sites[0]->block()->getSingleSuccessor();
        BasicBlock* cold = BasicBlock::Create(function_.getContext(), "cold", &function_, last);
        b_.SetInsertPoint(cold);
        const u32 count = u32(sites.size());
        std::vector<std::pair<PHINode*, PHINode*>> passed_on;  // those of the last block
        for (PHINode& phi : last->phis())
            passed_on.push_back({&phi, b_.CreatePHI(phi.getType(), count)});
        const bool has_limits = sites[0]->kind == LeaveKind::caller;
        PHINode* limit = has_limits ? b_.CreatePHI(b_.getInt32Ty(), count) : nullptr;
        std::map<u32, PHINode*> values;
        for (auto [slot, words] : words_at) values[slot] = b_.CreatePHI(type_of(words), count);
        u32 least_limit = ~u32{0};
        for (const Site* site : sites) {
            BasicBlock* from = site->block();
            for (auto [phi, mine] : passed_on) {
                mine->addIncoming(phi->getIncomingValueForBlock(from), from);
                phi->removeIncomingValue(from, false);
            }
            from->getTerminator()->replaceSuccessorWith(last, cold);
            if (limit) limit->addIncoming(b_.getInt32(site->limit), from);
            least_limit = std::min(least_limit, site->limit);
            std::map<u32, Value*> own;
            llvm::IRBuilder<> at(from->getTerminator());
            for (const auto& [place, value] : site->slots) {
                if (is_whole(place)) {
                    own[place.slot] = value;
                    continue;
                }
                for (u32 i = 0; i < place.words; i++) {
                    Value* word = value;
                    if (place.words == 2)
                        word = at.CreateTrunc(i ? at.CreateLShr(word, 32) : word, at.getInt32Ty());
                    if (place.words == 4) word = at.CreateExtractElement(word, u64(i));
                    own[place.slot + i] = word;
                }
            }
            // Nobody reads a slot that is dead: whatever a register holds there will do.
            for (auto [slot, node] : values) {
                auto found = own.find(slot);
                node->addIncoming(
                    found == own.end() ? llvm::PoisonValue::get(node->getType()) : found->second,
                    from);
            }
        }
        BasicBlock* written =
            BasicBlock::Create(function_.getContext(), "written", &function_, last);
        for (auto [slot, node] : values) {
            if (slot + words_at[slot] > least_limit) {
                BasicBlock* store =
                    BasicBlock::Create(function_.getContext(), "slot", &function_, written);
                b_.CreateCondBr(b_.CreateICmpUGT(limit, b_.getInt32(slot)), store, written);
                b_.SetInsertPoint(store);
            }
            write(sites[0]->fp(), slot, words_at[slot], node);
        }
        b_.CreateBr(written);
        b_.SetInsertPoint(written);
        b_.CreateBr(last);
        for (auto [phi, mine] : passed_on) phi->addIncoming(mine, written);
    }

    llvm::Type* type_of(u32 words) {
        if (words == 1) return b_.getInt32Ty();
        if (words == 2) return b_.getInt64Ty();
        return llvm::FixedVectorType::get(b_.getInt32Ty(), 4);
    }

    llvm::Function& function_;
    llvm::IRBuilder<> b_;
    llvm::MapVector<u32, Group> groups_;
    std::vector<CallInst*> writes_;
};

}  // namespace

void create_leave(llvm::IRBuilder<>& b, LeaveKind kind, Value* fp, u32 limit,
                  std::span<const LeftSlot> slots) {
    llvm::Module& module = *b.GetInsertBlock()->getModule();
    llvm::FunctionCallee callee = module.getOrInsertFunction(
        leave_name, llvm::FunctionType::get(b.getVoidTy(),
                                            {b.getInt32Ty(), b.getPtrTy(), b.getInt32Ty()}, false));
    std::vector<Value*> inputs;
    for (const LeftSlot& slot : slots) {
        inputs.push_back(b.getInt32(pack(slot.place)));
        inputs.push_back(slot.value);
    }
    CallInst* call = b.CreateCall(callee, {b.getInt32(u32(kind)), fp, b.getInt32(limit)},
                                  {llvm::OperandBundleDef(bundle_name, inputs)});
    call->setDoesNotThrow();
    call->addFnAttr(llvm::Attribute::NoMerge);
}

void expand_leaves(llvm::Function& function) { LeaveExpander(function).run(); }

}  // namespace gpurun::codegen
